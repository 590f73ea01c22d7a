import COpenSSL

/// The SHA-256 (FIPS 180-4) of bytes that come piece by piece. Confined to one thread at a time.
public final class RunningDigest {
  private let state: OpaquePointer

  /// Of no bytes so far.
  public init() {
    OpenSSL.prepare()
    guard let state = EVP_MD_CTX_new(), EVP_DigestInit_ex(state, EVP_sha256(), nil) == 1 else {
      preconditionFailure("OpenSSL has SHA-256, and memory for its state")
    }
    self.state = state
  }

  deinit { EVP_MD_CTX_free(state) }

  /// Takes the next bytes.
  public func append(_ bytes: UnsafeRawBufferPointer) {
    precondition(EVP_DigestUpdate(state, bytes.baseAddress, bytes.count) == 1, "OpenSSL can go on with a digest that it has begun")
  }

  /// The digest of all of them, 32 bytes; nothing may be taken afterwards.
  public func finish() -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: 32) { buffer, count in
      precondition(EVP_DigestFinal_ex(state, buffer.baseAddress, nil) == 1, "OpenSSL can end a digest that it has begun")
      count = 32
    }
  }
}
