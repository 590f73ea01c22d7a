import Cryptography
public import EventLoop

/// Makes WebSocket connections to servers.
///
/// One client serves any number of connections, which share its deadlines and buffers. It needs no end, since it holds nothing without
/// connections.
public final class WebSocketClient {
  private let loop: EventLoop
  private let endpoint: WebSocketEndpoint
  private let connectMilliseconds: Int
  /// Made for the first server with TLS.
  private var tls: TLSContext?

  /// The certificates in PEM that a server with TLS must have been signed by; nil for those of the system. Set it before the first call.
  public var authorities: [UInt8]?

  /// Makes a client; call it on the loop.
  ///
  /// - Parameters:
  ///   - configuration: its subprotocols are offered. If there are any, the server must choose one.
  ///   - connectMilliseconds: the limit for the connection, and again for the server's answer.
  ///   - sweepMilliseconds: the interval between two checks of all deadlines.
  public init(
    on loop: EventLoop, configuration: WebSocketConfiguration, connectMilliseconds: Int,
    sweepMilliseconds: Int = 1_000
  ) {
    loop.preconditionOnLoop()
    self.loop = loop
    self.connectMilliseconds = connectMilliseconds
    endpoint = WebSocketEndpoint(.client, on: loop, configuration, Sweep(on: loop, interval: sweepMilliseconds))
  }

  /// Connects and upgrades; call it from a task on the loop.
  ///
  /// The handler's `webSocketOpened` was called before it returns.
  /// - Parameters:
  ///   - url: `wss://HOST[:PORT]/PATH`, or `ws://` for a connection without TLS.
  ///   - headers: further fields of the request.
  public func connect(
    to url: String, headers: [(name: String, value: String)] = [], handler: any WebSocketHandler
  ) async throws(WebSocketClientError) -> WebSocketConnection {
    loop.preconditionOnLoop()
    let target = try Self.parse(url)
    let stream = try await open(target)
    if target.scheme == .wss { stream.put(try makeLayer(target)) }
    let handshake = WebSocketClientHandshake(target, endpoint, stream, handler)
    await withCheckedContinuation { continuation in
      handshake.begin(headers, withinMilliseconds: connectMilliseconds) { continuation.resume() }
    }
    return try handshake.outcome()
  }

  private static func parse(_ text: String) throws(WebSocketClientError) -> HTTPURL {
    do throws(HTTPTextFailure) {
      let url = try HTTPURL(text)
      guard url.scheme.isWebSocket else { throw HTTPTextFailure("the URL of a WebSocket server begins with wss:// or ws://") }
      return url
    } catch { throw .url(text, error) }
  }

  private func makeLayer(_ url: HTTPURL) throws(WebSocketClientError) -> TLSLayer {
    do throws(TLSError) {
      let context = if let tls { tls } else { try TLSContext(authorities: authorities, protocols: ["http/1.1"]) }
      tls = context
      return TLSLayer(context.connect(host: url.host, isNumeric: url.isNumeric, port: url.port))
    } catch { throw .authorities(error) }
  }

  private func open(_ url: HTTPURL) async throws(WebSocketClientError) -> Stream {
    do throws(EventLoopError) {
      return try await Stream.connect(on: loop, to: url.address, timeoutMilliseconds: connectMilliseconds)
    } catch { throw .connection(error) }
  }
}
