import COpenSSL

/// The digests of FIPS 180-4 that Carillon has a use for.
public enum Digest {
  /// SHA-1, 20 bytes: only where a protocol asks for it (RFC 6455's accept key, the names of Redis scripts).
  public static func sha1(_ bytes: UnsafeRawBufferPointer) -> [UInt8] {
    OpenSSL.prepare()
    return [UInt8](unsafeUninitializedCapacity: 20) { buffer, written in
      let digest = SHA1(bytes.bindMemory(to: UInt8.self).baseAddress, bytes.count, buffer.baseAddress)
      precondition(digest != nil, "OpenSSL has the digest, and memory for its state")
      written = 20
    }
  }

  /// SHA-1 of a text's UTF-8.
  public static func sha1(_ text: String) -> [UInt8] {
    var text = text
    return text.withUTF8 { sha1(UnsafeRawBufferPointer($0)) }
  }

  /// SHA-256, 32 bytes.
  public static func sha256(_ bytes: UnsafeRawBufferPointer) -> [UInt8] {
    withSHA256(bytes) { Array($0) }
  }

  /// SHA-256 of a text's UTF-8.
  public static func sha256(_ text: String) -> [UInt8] {
    var text = text
    return text.withUTF8 { sha256(UnsafeRawBufferPointer($0)) }
  }

  /// Passes the SHA-256 of bytes to `body`, 32 bytes that are valid during the call. For the path of each record: it allocates nothing.
  public static func withSHA256<Result>(_ bytes: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) throws -> Result) rethrows
    -> Result
  {
    try withUnsafeTemporaryAllocation(byteCount: 32, alignment: 8) { output in
      let isMade = EVP_Digest(bytes.baseAddress, bytes.count, output.baseAddress, nil, OpaquePointer(bitPattern: fetchedSHA256), nil)
      precondition(isMade == 1, "OpenSSL has the digest, and memory for its state")
      return try body(UnsafeRawBufferPointer(output))
    }
  }

  /// The address of OpenSSL's SHA-256, which is looked up once: a look-up takes as long as the digest of sixteen bytes.
  private static let fetchedSHA256: UInt = {
    OpenSSL.prepare()
    return UInt(bitPattern: EVP_MD_fetch(nil, "SHA256", nil))
  }()
}
