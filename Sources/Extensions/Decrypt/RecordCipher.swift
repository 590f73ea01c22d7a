import Cryptography

/// The key and the nonces of one content's records (RFC 8188, sections 2.2 and 2.3).
struct RecordCipher {
  private static let keyInfo = Array("Content-Encoding: aes128gcm\0".utf8)
  private static let nonceInfo = Array("Content-Encoding: nonce\0".utf8)

  let cipher: AES128GCM
  private let nonce: [UInt8]

  init(_ key: ContentKey, salt: [UInt8]) {
    let derived = HMACKey(key.bytes.withUnsafeBytes { HKDF.extract(salt: salt, inputKeyingMaterial: $0) })
    cipher = HKDF.expand(derived, info: Self.keyInfo, count: AES128GCM.keyBytes).withUnsafeBytes { AES128GCM($0) }
    nonce = HKDF.expand(derived, info: Self.nonceInfo, count: AES128GCM.nonceBytes)
  }

  /// Opens the record of this number into memory that is 16 bytes shorter; returns whether it is authentic.
  func open(_ record: UnsafeRawBufferPointer, at place: Int, into plaintext: UnsafeMutableRawBufferPointer) -> Bool {
    nonce(of: place).withUnsafeBytes { cipher.open(record, nonce: $0, into: plaintext) }
  }

  /// The number is added without carry to the end of the content's nonce, so that no record can replace another.
  func nonce(of place: Int) -> [UInt8] {
    var nonce = nonce
    for byte in 0..<8 { nonce[nonce.count - 1 - byte] ^= UInt8(truncatingIfNeeded: UInt64(place) >> UInt64(8 * byte)) }
    return nonce
  }
}
