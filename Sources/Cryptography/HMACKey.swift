import COpenSSL

/// A key for HMAC-SHA256 (RFC 2104, FIPS 198-1), prepared once for many messages. Confined to one thread at a time.
public final class HMACKey {
  /// Bytes of a whole authentication code.
  public static var codeBytes: Int { 32 }

  // The states after the padded key, plain memory: a message costs two copies and its own blocks.
  private var inner: SHA256_CTX
  private var outer: SHA256_CTX

  /// Prepares a key of any length; at least 32 bytes are as strong as the hash.
  public init(_ key: [UInt8]) {
    OpenSSL.prepare()
    let block = 64
    let short = key.count > block ? key.withUnsafeBytes { Digest.sha256($0) } : key
    let padded = short + [UInt8](repeating: 0, count: block - short.count)
    inner = Self.state(padded.map { $0 ^ 0x36 })
    outer = Self.state(padded.map { $0 ^ 0x5C })
  }

  private static func state(_ bytes: [UInt8]) -> SHA256_CTX {
    var state = SHA256_CTX()
    precondition(SHA256_Init(&state) == 1 && SHA256_Update(&state, bytes, bytes.count) == 1, failure)
    return state
  }

  deinit {
    OPENSSL_cleanse(&inner, MemoryLayout<SHA256_CTX>.size)
    OPENSSL_cleanse(&outer, MemoryLayout<SHA256_CTX>.size)
  }

  // An unnoticed failure would leave a code that says nothing about the message, and `verify` would believe it.
  private static var failure: String { "SHA-256 takes any message" }

  /// The authentication code of a message, valid during the call.
  public func withAuthenticationCode<R>(_ message: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R {
    try withUnsafeTemporaryAllocation(of: UInt8.self, capacity: Self.codeBytes) { code in
      finish(inner, UnsafeRawBufferPointer(message), code)
      finish(outer, UnsafeRawBufferPointer(code), code)
      return try body(UnsafeRawBufferPointer(code))
    }
  }

  private func finish(_ state: SHA256_CTX, _ bytes: UnsafeRawBufferPointer, _ code: UnsafeMutableBufferPointer<UInt8>) {
    var state = state
    precondition(
      SHA256_Update(&state, bytes.baseAddress, bytes.count) == 1 && SHA256_Final(code.baseAddress, &state) == 1, Self.failure)
    OPENSSL_cleanse(&state, MemoryLayout<SHA256_CTX>.size)
  }

  /// The authentication code of a message, copied.
  public func authenticationCode(_ message: UnsafeRawBufferPointer) -> [UInt8] { withAuthenticationCode(message) { Array($0) } }

  /// Whether `code` is the beginning of the message's code, at least half of it (RFC 2104, section 5), compared in constant time.
  public func verify(_ code: UnsafeRawBufferPointer, of message: UnsafeRawBufferPointer) -> Bool {
    guard code.count >= Self.codeBytes / 2, code.count <= Self.codeBytes else { return false }
    return withAuthenticationCode(message) { CRYPTO_memcmp($0.baseAddress, code.baseAddress, code.count) == 0 }
  }
}
