import Cryptography

@testable import Extensions

/// The producer's side of encrypted content, which the program only opens.
extension EncryptedContent {
  /// The default record size of sealed content.
  static var defaultRecordSize: Int { 4096 }

  /// Seals content under a key, with a fresh salt.
  ///
  /// - Parameters:
  ///   - keyID: names the key for the receiver, at most `maximumKeyIDBytes`. Everybody can read it.
  ///   - recordSize: the bytes of a record, within `recordSizes`.
  ///   - padding: zeros to add in all, 0 or more, which hide the length. They stand in the first records, beside one
  ///     byte of content each as long as there is content.
  ///   - maximum: the most bytes of the sealed content.
  static func seal(
    _ plaintext: [UInt8], with key: ContentKey, keyID: [UInt8] = [], recordSize: Int = defaultRecordSize, padding: Int = 0,
    maximum: Int = defaultMaximum
  ) throws(EncryptedContentError) -> [UInt8] {
    try seal(
      plaintext, with: key, keyID: keyID, recordSize: recordSize, padding: padding, maximum: maximum,
      salt: RandomBytes.make(count: saltBytes))
  }

  /// The same with a salt of 16 bytes, which must never repeat with the same key.
  static func seal(
    _ plaintext: [UInt8], with key: ContentKey, keyID: [UInt8], recordSize: Int, padding: Int, maximum: Int, salt: [UInt8]
  ) throws(EncryptedContentError) -> [UInt8] {
    precondition(salt.count == saltBytes, "a salt has 16 bytes")
    guard recordSizes.contains(recordSize) else { throw .recordSize(recordSize) }
    precondition(keyID.count <= maximumKeyIDBytes, "the length of a key id is one byte")
    let room = recordSize - recordOverhead
    let content = try contentBytes(plaintext, padding: padding, maximum: maximum)
    let records = content == 0 ? 1 : (content - 1) / room + 1
    guard records <= (maximum - content - fixedHeaderBytes - keyID.count) / recordOverhead else { throw .tooLong(maximum: maximum) }

    let cipher = RecordCipher(key, salt: salt)
    var sealed = salt + (0..<4).map { UInt8(truncatingIfNeeded: recordSize >> (24 - 8 * $0)) } + [UInt8(keyID.count)] + keyID
    sealed.reserveCapacity(sealed.count + content + records * recordOverhead)
    var rest = plaintext[...]
    var paddingLeft = padding
    for place in 0..<records {
      let zeros = min(paddingLeft, rest.isEmpty ? room : room - 1)
      let part = rest.prefix(room - zeros)
      rest = rest.dropFirst(part.count)
      paddingLeft -= zeros
      let record = part + [place == records - 1 ? 2 : 1] + [UInt8](repeating: 0, count: zeros)
      let end = sealed.count
      sealed += [UInt8](repeating: 0, count: record.count + tagBytes)
      record.withUnsafeBytes { record in
        sealed.withUnsafeMutableBytes { cipher.seal(record, at: place, into: UnsafeMutableRawBufferPointer(rebasing: $0[end...])) }
      }
    }
    return sealed
  }

  /// Seals content to a receiver's public key, with a fresh key pair and a fresh salt, as a single record.
  ///
  /// - Parameters:
  ///   - publicKey: the receiver's, an uncompressed point of 65 bytes.
  ///   - authenticationSecret: the receiver's, 16 bytes.
  ///   - padding: zeros to add, 0 or more, which hide the length.
  ///   - maximum: the most bytes of the sealed content.
  static func seal(
    _ plaintext: [UInt8], to publicKey: [UInt8], authenticationSecret: [UInt8], padding: Int = 0, maximum: Int = defaultMaximum
  ) throws(EncryptedContentError) -> [UInt8] {
    try seal(
      plaintext, to: publicKey, authenticationSecret: authenticationSecret, padding: padding, maximum: maximum, from: .generate(),
      salt: RandomBytes.make(count: saltBytes))
  }

  /// The same with a key pair and a salt, which must never repeat together.
  static func seal(
    _ plaintext: [UInt8], to publicKey: [UInt8], authenticationSecret: [UInt8], padding: Int, maximum: Int, from sender: P256KeyAgreement,
    salt: [UInt8]
  ) throws(EncryptedContentError) -> [UInt8] {
    precondition(authenticationSecret.count == WebPushReceiver.secretBytes, "RFC 8291 says 16 bytes")
    let secret = sender.sharedSecret(with: publicKey)
    guard
      let key = WebPushReceiver.contentKey(
        secret: secret, authenticationSecret: authenticationSecret, receiver: publicKey, sender: sender.publicKey)
    else { throw .publicKey }
    // RFC 8291, section 4: the record size is greater than the single record.
    let content = try contentBytes(plaintext, padding: padding, maximum: maximum)
    let recordSize = min(content, recordSizes.upperBound - recordOverhead - 1) + recordOverhead + 1
    return try seal(
      plaintext, with: key, keyID: sender.publicKey, recordSize: max(defaultRecordSize, recordSize), padding: padding, maximum: maximum,
      salt: salt)
  }

  /// Plaintext and padding together, which must not be too long.
  static func contentBytes(_ plaintext: [UInt8], padding: Int, maximum: Int) throws(EncryptedContentError) -> Int {
    precondition(padding >= 0, "there is no less padding than none")
    guard padding <= maximum, plaintext.count <= maximum - padding else { throw .tooLong(maximum: maximum) }
    return plaintext.count + padding
  }
}

extension RecordCipher {
  /// Seals the record of this number, counted from 0, into memory that is 16 bytes longer.
  func seal(_ plaintext: UnsafeRawBufferPointer, at place: Int, into record: UnsafeMutableRawBufferPointer) {
    nonce(of: place).withUnsafeBytes { cipher.seal(plaintext, nonce: $0, into: record) }
  }
}
