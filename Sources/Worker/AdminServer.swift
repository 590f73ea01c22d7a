public import EventLoop
public import HTTP

/// The server for operators and orchestrators: `/metrics`, `/livez`, `/readyz`.
///
/// | path | answer |
/// |---|---|
/// | `/metrics` | Prometheus' text format |
/// | `/livez` | 200, or 503 with the names of the loops that stand still |
/// | `/readyz` | 200 or 503, with each condition as JSON |
///
/// Requests that a web page may have made are refused with 403, see `AdminAccess`.
///
/// It has a loop of its own, so it answers even while a lane's loop is stuck.
public actor AdminServer {
  private nonisolated let loop: EventLoop
  private nonisolated let health: Health
  private nonisolated let metrics: MetricRegistry
  private nonisolated let tls: TLSServerConfiguration?
  private var server: HTTPServer?
  private var pulse: Timer?

  /// The most connections at once.
  public static let maximumConnections = 64

  /// The server's loop is its executor.
  public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  /// Where it listens, with the real port instead of 0.
  public private(set) var address: SocketAddress

  /// Starts the loop and listens.
  ///
  /// - Parameter tls: TLS of its connections; nil for none.
  /// - Throws: if the address is in use or does not belong to this machine. Then nothing is left running.
  public static func start(
    at address: SocketAddress, health: Health, metrics: MetricRegistry, tls: TLSServerConfiguration? = nil
  ) async throws(EventLoopError) -> AdminServer {
    let admin = AdminServer(address, health, metrics, tls)
    do {
      try await admin.listen()
    } catch {
      await admin.close()
      throw error
    }
    return admin
  }

  private init(_ address: SocketAddress, _ health: Health, _ metrics: MetricRegistry, _ tls: TLSServerConfiguration?) {
    self.tls = tls
    loop = EventLoop(name: "admin")
    self.address = address
    self.health = health
    self.metrics = metrics
  }

  private func listen() throws(EventLoopError) {
    var configuration = HTTPServerConfiguration()
    configuration.maximumConnections = Self.maximumConnections
    configuration.replacesSilent = true
    configuration.maximumBodyBytes = 0
    configuration.tls = tls
    let server = try HTTPServer(on: loop, at: address, configuration: configuration, routes: routes())
    self.server = server
    address = server.localAddress
    // Asks each second, so that a stuck loop is known before an operator asks.
    let pulse = Timer(on: loop) { [health] in _ = health.silentLoops() }
    pulse.start(after: 1000, repeating: 1000)
    self.pulse = pulse
  }

  private func routes() -> HTTPRoutes {
    let access = AdminAccess(isLoopback: address.isLoopback)
    let refused = Dictionary(
      uniqueKeysWithValues: AdminAccess.Field.allCases.map { ($0, metrics.make(MetricNames.adminRefused, $0.rawValue)) })
    var routes = HTTPRoutes()
    func add(_ path: String, _ answer: @escaping () -> HTTPResponse) {
      routes.add(.get, path) { request, responder in
        guard let field = access.refusedField(of: request) else { return responder.respond(answer()) }
        refused[field]?.increment()
        responder.respond(field.refusal)
      }
    }
    add("/metrics") { [metrics] in HTTPResponse(.ok, text: metrics.text, contentType: "text/plain; version=0.0.4; charset=utf-8") }
    add("/livez") { [health] in
      let silent = health.silentLoops()
      let text = silent.map { "\($0.name) has not turned for \(ReadableText.duration(milliseconds: Int64($0.milliseconds)))\n" }.joined()
      return HTTPResponse(silent.isEmpty ? .ok : .serviceUnavailable, text: silent.isEmpty ? "alive\n" : text)
    }
    add("/readyz") { [health] in
      let (isReady, json) = health.snapshot
      return HTTPResponse(isReady ? .ok : .serviceUnavailable, text: json + "\n", contentType: "application/json")
    }
    return routes
  }

  /// Answers open requests, then ends the server and its loop. Nothing of the server may be called afterwards.
  public nonisolated func close() async {
    await stop()
    // Not in a method of the actor, which could not continue after its loop has ended.
    await loop.close()
  }

  private func stop() async {
    pulse?.close()
    pulse = nil
    let server = server
    self.server = nil
    await server?.close(withinMilliseconds: 1000)
  }
}
