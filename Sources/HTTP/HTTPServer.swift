import Cryptography
public import EventLoop

/// An HTTP/1.1 server (RFC 9112) on one loop, with WebSocket endpoints (RFC 6455).
///
/// It answers the requests of a connection in order. Each limit of its configuration has a status or an end of its own. Close it with
/// `close(withinMilliseconds:)`.
public final class HTTPServer {
  /// The most clients beyond the limit that get a refusal at the same time.
  private static let refusalsAtOnce = 64

  let loop: EventLoop
  let configuration: HTTPServerConfiguration
  private(set) var routes: HTTPRoutes
  let sweep: Sweep
  let continueResponse = SharedBytes.make("HTTP/1.1 100 Continue\r\n\r\n")
  private(set) var isDraining = false
  /// The number of connections that are being refused.
  private var refusing = 0
  private var parsers: Pool<MessageParser>
  private var clock = HTTPDate()
  private var listener: Listener?
  private var endpoints: [WebSocketEndpoint] = []
  /// The number of connections of each network that has some, if connections per address are limited.
  private var connections: [PeerNetwork: Int] = [:]
  private let tls: TLSAcceptor?
  /// The tasks that wait until no connection is open.
  private let closing: LoopWaiters
  /// The connections that may be accepted at once after a pause: the share of this time.
  private static let burstMilliseconds = 50

  /// The counters.
  public internal(set) var statistics = HTTPServerStatistics()

  /// Whether requests wait in the kernel: nothing more is read of them, and none begins.
  ///
  /// Their deadlines continue, so a pause must be short. Responses are sent as ever.
  public var isPaused = false {
    didSet {
      guard isPaused != oldValue else { return }
      for case let connection as HTTPConnection in sweep.all { connection.pauseChanged() }
    }
  }
  /// The counters of TLS.
  public var tlsStatistics: TLSStatistics {
    var statistics = tls?.statistics ?? TLSStatistics()
    statistics.waits = listener?.pauses ?? 0
    return statistics
  }

  /// Its address, with the assigned port for 0.
  public private(set) var localAddress: SocketAddress

  /// Listens and serves; call it on the loop.
  ///
  /// - Parameter address: numeric.
  public init(
    on loop: EventLoop, at address: SocketAddress, configuration: HTTPServerConfiguration = HTTPServerConfiguration(), routes: HTTPRoutes
  ) throws(EventLoopError) {
    self.loop = loop
    closing = LoopWaiters(on: loop)
    self.configuration = configuration
    self.routes = routes
    do throws(TLSError) { tls = if let tls = configuration.tls { try TLSAcceptor(tls) } else { nil } } catch {
      throw EventLoopError(code: .other, operation: "listen at \(address)", message: error.description)
    }
    let sweep = Sweep(on: loop, interval: configuration.sweepMilliseconds)
    self.sweep = sweep
    let limits = MessageParser.Limits(fields: configuration.maximumHeaderFields, bodyBytes: configuration.maximumBodyBytes)
    let bodies = BodyBudget(maximum: configuration.maximumBufferedBytes)
    parsers = Pool { MessageParser.requests(limits, bodies) }
    localAddress = address
    func listen(at address: SocketAddress) throws(EventLoopError) -> Listener {
      try Listener(on: loop, at: address, backlog: configuration.backlog, reusePort: configuration.reusePort) { [weak self] stream in
        self?.accepted(stream)
      }
    }
    let listener: Listener
    do throws(EventLoopError) { listener = try listen(at: address) } catch {
      guard error.code == .addressInUse, configuration.takesAnotherPort else { throw error }
      listener = try listen(at: SocketAddress(host: address.host, port: 0))
    }
    localAddress = listener.localAddress
    listener.pace = configuration.tls.map { TokenBucket(perSecond: $0.handshakesPerSecond, burstMilliseconds: Self.burstMilliseconds) }
    self.listener = listener
    self.routes.bindWebSockets { [weak self] configuration in
      let endpoint = WebSocketEndpoint(.server, on: loop, configuration, sweep)
      endpoint.onStreamEnd = { self?.streamEnded(of: $0) }
      self?.endpoints.append(endpoint)
      return endpoint
    }
  }

  private func accepted(_ stream: Stream) {
    statistics.accepted += 1
    if let tls { stream.put(tls.makeLayer()) }
    let network = configuration.maximumConnectionsPerAddress > 0 ? stream.peerNetwork : nil
    if statistics.open - refusing >= configuration.maximumConnections, !replaceSilent() {
      statistics.overLimit += 1
      refuse(stream, .serviceUnavailable, "There are too many connections.")
    } else if let descriptor = stream.descriptor, descriptor >= configuration.maximumDescriptor {
      statistics.overDescriptors += 1
      refuse(stream, .serviceUnavailable, "There are too many connections.")
    } else if let network, connections[network, default: 0] >= configuration.maximumConnectionsPerAddress {
      statistics.overAddressLimit += 1
      refuse(stream, .tooManyRequests, "There are too many connections of your address.")
    } else {
      statistics.open += 1
      if let network { connections[network, default: 0] += 1 }
      listener?.pace?.spend()
      HTTPConnection(self, stream, of: network).start()
    }
  }

  /// Closes the connection that has waited longest without a request; false if each of them has one.
  private func replaceSilent() -> Bool {
    guard configuration.replacesSilent else { return false }
    let silent = sweep.earliest {
      ($0 as? HTTPConnection)?.silentSince
    } unless: {
      ($0 as? HTTPConnection)?.hasUnreadRequest ?? false
    }
    silent?.abort()
    return silent != nil
  }

  /// Sends the reason, unless too many refusals are being sent already.
  private func refuse(_ stream: Stream, _ status: HTTPStatus, _ text: String) {
    guard refusing < Self.refusalsAtOnce, tls == nil else { return stream.close() }
    refusing += 1
    statistics.open += 1
    let seconds = configuration.retryAfterSeconds
    let header = ("Retry-After", String(Int.random(in: seconds...max(seconds, 2 * seconds))))
    var response = configuration.refusal(status, text)
    response.headers.append(header)
    HTTPConnection(self, stream, of: nil).startRefusing(response)
  }

  /// A refused connection has ended.
  func refusalEnded() { refusing -= 1 }

  // MARK: What connections need

  func takeParser() -> MessageParser { parsers.take() }

  func giveBack(_ parser: MessageParser) {
    parser.reset()
    parsers.giveBack(parser)
  }

  func date() -> String { clock.now() }

  /// - Parameter network: the network under which the connection was counted, if it was.
  func streamEnded(of network: PeerNetwork?) {
    statistics.open -= 1
    if let network, let count = connections[network] { connections[network] = count > 1 ? count - 1 : nil }
    guard statistics.open == 0, isDraining else { return }
    for endpoint in endpoints { endpoint.deliverEnds() }
    closing.look()
  }

  // MARK: Ending

  /// Closes each connection after its next response. Connections without a request stay.
  public func announceEnd() { isDraining = true }

  /// Accepts no more connections; existing ones continue.
  public func stopAccepting() { listener?.close() }

  /// Stops accepting, finishes running requests, closes idle connections, and returns when all are closed.
  ///
  /// Open WebSocket connections are closed with 1001, after their queued frames.
  /// - Parameter withinMilliseconds: connections that are still open then are cut.
  public func close(withinMilliseconds: Int) async {
    loop.preconditionOnLoop()
    stopAccepting()
    isDraining = true
    for member in sweep.all { member.drain() }
    // This turn's writes leave at its end.
    await closing.wait(withinMilliseconds: max(1, withinMilliseconds)) { statistics.open == 0 }
    for member in sweep.all { member.abort() }
    await closing.wait { statistics.open == 0 }
  }
}
