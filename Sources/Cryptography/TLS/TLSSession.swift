import COpenSSL

/// One TLS session: bytes in, bytes out, without a socket. Confined to the thread of its context.
///
/// After each call the owner takes the output: the next call of any session of the context drops it.
public final class TLSSession {
  /// How a session has ended.
  public enum End: Sendable, Hashable {
    /// The peer sends nothing more, and says so.
    case peerClosed
    /// The session cannot continue. The output may have an alert for the peer.
    indirect case failed(TLSError)
  }

  private let context: TLSContext
  private let native: OpaquePointer
  /// Of a client's session: the server's host and port.
  public let server: String?

  /// Whether the handshake is done, so that bytes can be sent.
  public private(set) var isReady = false
  /// Nil while the peer may send.
  public private(set) var end: End?

  init(_ context: TLSContext, _ native: OpaquePointer, server: String?) {
    (self.context, self.native, self.server) = (context, native, server)
  }

  deinit {
    // Otherwise OpenSSL would not resume it: devices often vanish without a last word, which says nothing about their keys.
    if end.map({ $0 == .peerClosed }) ?? true { SSL_set_shutdown(native, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN) }
    SSL_free(native)
  }

  /// Whether an earlier session was resumed.
  public var isResumed: Bool { SSL_session_reused(native) == 1 }

  /// `TLSv1.2` or `TLSv1.3`.
  public var version: String { String(cString: SSL_get_version(native)) }

  /// The negotiated application protocol; nil if there is none.
  public var applicationProtocol: String? {
    var (name, count): (UnsafePointer<UInt8>?, UInt32) = (nil, 0)
    SSL_get0_alpn_selected(native, &name, &count)
    return name.map { String(decoding: UnsafeBufferPointer(start: $0, count: Int(count)), as: UTF8.self) }
  }

  /// Takes what the last call has left for the peer; nil if there is nothing.
  public func takeOutput<R>(_ body: (UnsafeRawBufferPointer) -> R) -> R? {
    guard !context.output.isEmpty else { return nil }
    defer { context.output.removeAll(keepingCapacity: true) }
    return context.output.withUnsafeBytes { body($0) }
  }

  private func prepare(_ input: UnsafeRawBufferPointer = UnsafeRawBufferPointer(start: nil, count: 0)) {
    ERR_clear_error()
    context.input = input
    context.server = server
    context.output.removeAll(keepingCapacity: true)
  }

  /// Writes a client's first message.
  func begin() {
    prepare()
    judge(SSL_do_handshake(native))
  }

  /// Takes bytes of the peer. `body` gets decrypted bytes, valid during the call, and must not call a session of this context.
  public func receive(_ bytes: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) -> Void) {
    guard end == nil else { return }
    prepare(bytes)
    let plain = context.plain
    var filled = 0
    while true {
      var count = 0
      let result = SSL_read_ex(native, plain.baseAddress.map { $0 + filled }, plain.count - filled, &count)
      if !isReady { isReady = SSL_is_init_finished(native) == 1 }
      filled += count
      if result != 1 || filled == plain.count {
        if filled > 0 { body(UnsafeRawBufferPointer(rebasing: plain[..<filled])) }
        filled = 0
      }
      if result != 1 {
        judge(result)
        break
      }
    }
    context.input = UnsafeRawBufferPointer(start: nil, count: 0)
  }

  /// Encrypts bytes, at least one, after the handshake; false if the session has failed.
  public func send(_ bytes: UnsafeRawBufferPointer) -> Bool {
    precondition(isReady, "bytes are sent after the handshake")
    prepare()
    if case .failed = end { return false }
    var count = 0
    let result = SSL_write_ex(native, bytes.baseAddress, bytes.count, &count)
    if result != 1 { judge(result) }
    return result == 1
  }

  /// Tells the peer, after the handshake, that this side sends nothing more.
  public func finish() {
    prepare()
    if isReady, end.map({ $0 == .peerClosed }) ?? true { SSL_shutdown(native) }
  }

  /// Reads the result of OpenSSL's last call.
  private func judge(_ result: Int32) {
    guard result != 1 else { return }
    switch SSL_get_error(native, result) {
    case SSL_ERROR_WANT_READ, SSL_ERROR_WANT_WRITE: return
    case SSL_ERROR_ZERO_RETURN: end = .peerClosed
    default: end = .failed(.ofSession(verification: server == nil ? Int(X509_V_OK) : SSL_get_verify_result(native)))
    }
  }
}
