import COpenSSL

/// A key for HMAC-SHA256 (RFC 2104, FIPS 198-1), prepared once for many messages. Confined to one thread at a time.
public final class HMACKey {
  /// Bytes of a whole authentication code.
  public static var codeBytes: Int { 32 }

  // The states after the padded key, and one to work in: a message costs two copies and its own blocks.
  private let inner: OpaquePointer
  private let outer: OpaquePointer
  private let work: OpaquePointer

  /// Prepares a key of any length; at least 32 bytes are as strong as the hash.
  public init(_ key: [UInt8]) {
    let block = 64
    let short = key.count > block ? key.withUnsafeBytes { Digest.sha256($0) } : key
    let padded = short + [UInt8](repeating: 0, count: block - short.count)
    inner = Self.state(padded.map { $0 ^ 0x36 })
    outer = Self.state(padded.map { $0 ^ 0x5C })
    work = Self.state([])
  }

  private static func state(_ bytes: [UInt8]) -> OpaquePointer {
    guard let state = EVP_MD_CTX_new(), EVP_DigestInit_ex(state, EVP_sha256(), nil) == 1,
      EVP_DigestUpdate(state, bytes, bytes.count) == 1
    else { preconditionFailure("OpenSSL has SHA-256, and memory for its state") }
    return state
  }

  // Freeing a context clears it.
  deinit { for state in [inner, outer, work] { EVP_MD_CTX_free(state) } }

  /// The authentication code of a message, valid during the call.
  public func withAuthenticationCode<R>(_ message: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R {
    try withUnsafeTemporaryAllocation(of: UInt8.self, capacity: Self.codeBytes) { code in
      // An unnoticed failure would leave a code that says nothing about the message, and `verify` would believe it.
      precondition(
        EVP_MD_CTX_copy_ex(work, inner) == 1 && EVP_DigestUpdate(work, message.baseAddress, message.count) == 1
          && EVP_DigestFinal_ex(work, code.baseAddress, nil) == 1 && EVP_MD_CTX_copy_ex(work, outer) == 1
          && EVP_DigestUpdate(work, code.baseAddress, code.count) == 1 && EVP_DigestFinal_ex(work, code.baseAddress, nil) == 1,
        "OpenSSL has SHA-256, and memory for its state")
      return try body(UnsafeRawBufferPointer(code))
    }
  }

  /// The authentication code of a message, copied.
  public func authenticationCode(_ message: UnsafeRawBufferPointer) -> [UInt8] { withAuthenticationCode(message) { Array($0) } }

  /// Whether `code` is the beginning of the message's code, at least half of it (RFC 2104, section 5), compared in constant time.
  public func verify(_ code: UnsafeRawBufferPointer, of message: UnsafeRawBufferPointer) -> Bool {
    guard code.count >= Self.codeBytes / 2, code.count <= Self.codeBytes else { return false }
    return withAuthenticationCode(message) { CRYPTO_memcmp($0.baseAddress, code.baseAddress, code.count) == 0 }
  }
}
