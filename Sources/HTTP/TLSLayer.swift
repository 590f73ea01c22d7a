public import Cryptography
import EventLoop

/// TLS of a server.
public struct TLSServerConfiguration: Sendable {
  /// The certificate and the key, which may be replaced at any time.
  var identity: InForce<TLSIdentity>
  /// Derive the keys of session tickets: the same in all workers that resume each other's sessions.
  var ticketSecrets: InForce<KeyRing>
  /// The most connections that are accepted in a second on one loop, and so the most handshakes. Further ones wait.
  var handshakesPerSecond: Int

  /// The default of `handshakesPerSecond`: about a quarter of a loop's time.
  public static let standardHandshakes = 500

  /// Describes TLS with an identity.
  public init(_ identity: InForce<TLSIdentity>, ticketSecrets: InForce<KeyRing>, handshakesPerSecond: Int = standardHandshakes) {
    (self.identity, self.ticketSecrets, self.handshakesPerSecond) = (identity, ticketSecrets, handshakesPerSecond)
  }
}

/// The counters of a server's TLS since its start.
public struct TLSStatistics: Sendable {
  /// Handshakes that were done in full.
  public var full = 0
  /// Handshakes that resumed a session.
  public var resumed = 0
  /// How often connections had to wait, because there were too many handshakes.
  public var waits = 0
  /// Sessions that have failed, by reason.
  public var failed: [TLSError.Code: Int] = [:]

  /// Makes counters of zero.
  public init() {}
}

/// What a server's TLS connections share.
final class TLSAcceptor {
  /// What a client gets that speaks HTTP without TLS.
  static let plainRefusal = SharedBytes.make(
    "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 52\r\n\r\n"
      + "This port speaks TLS: the URL is https:// or wss://\n")

  var statistics = TLSStatistics()
  private let context: TLSContext

  init(_ configuration: TLSServerConfiguration) throws(TLSError) {
    context = try TLSContext(server: configuration.identity, ticketSecrets: configuration.ticketSecrets, protocols: ["http/1.1"])
  }

  func makeLayer() -> TLSLayer { TLSLayer(context.accept(), self) }
}

/// A TLS session as the layer of a stream.
final class TLSLayer: StreamLayer {
  private let session: TLSSession
  /// Nil for a client.
  private weak var acceptor: TLSAcceptor?
  private var isCounted = false
  /// Whether the peer speaks HTTP without TLS.
  private var isPlain = false

  init(_ session: TLSSession, _ acceptor: TLSAcceptor? = nil) { (self.session, self.acceptor) = (session, acceptor) }

  var isReady: Bool { session.isReady }

  func receive(_ bytes: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) -> Void) -> StreamLayerState {
    session.receive(bytes, body)
    if session.isReady, !isCounted, let acceptor {
      isCounted = true
      if session.isResumed { acceptor.statistics.resumed += 1 } else { acceptor.statistics.full += 1 }
    }
    switch session.end {
    case nil: return .open
    case .peerClosed?: return .ended
    case .failed(let error)?:
      isPlain = error.code == .plainHTTP
      acceptor?.statistics.failed[error.code, default: 0] += 1
      return .failed(EventLoopError(code: .other, operation: session.server.map { "TLS with \($0)" } ?? "TLS", message: error.description))
    }
  }

  // A failure here is a failure of the next `receive`, or ends with the connection.
  func send(_ bytes: UnsafeRawBufferPointer) { _ = session.send(bytes) }

  func finish() { session.finish() }

  func takeOutput() -> SharedBytes? {
    let output = session.takeOutput { SharedBytes.make($0) }
    return isPlain ? TLSAcceptor.plainRefusal : output
  }
}
