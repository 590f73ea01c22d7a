import COpenSSL

/// OpenSSL as the whole process has it: our modules, librdkafka and libcurl share one copy.
public enum OpenSSL {
  /// Initializes OpenSSL for as long as the process lives.
  ///
  /// OpenSSL frees its own state in `exit`, and a thread that is still in it then crashes. Whoever initializes it first decides whether
  /// it does. So each module calls this before it uses OpenSSL or a library that does; all calls but the first do nothing.
  public static func prepare() { prepared }

  private static let prepared: Void = {
    precondition(OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil) == 1, "OpenSSL can be initialized")
  }()
}
