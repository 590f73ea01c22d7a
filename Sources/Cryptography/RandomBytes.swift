import COpenSSL

/// Random bytes that nobody can guess, from OpenSSL's generator.
public enum RandomBytes {
  /// So many bytes.
  public static func make(count: Int) -> [UInt8] {
    OpenSSL.prepare()
    return [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
      precondition(RAND_bytes(buffer.baseAddress, Int32(count)) == 1, "the system gives no randomness: nothing secret can be made")
      initialized = count
    }
  }

  /// A 64-bit number.
  public static func number() -> UInt64 { make(count: 8).reduce(0) { $0 << 8 | UInt64($1) } }
}
