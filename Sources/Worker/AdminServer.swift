public import EventLoop
import HTTP

/// What operators and orchestrators ask a process: `/metrics`, `/livez`, `/readyz`. On a loop of its own.
///
/// | path | answer |
/// |---|---|
/// | `/metrics` | Prometheus' text format |
/// | `/livez` | 200, or 503 with the names of the loops that do not turn |
/// | `/readyz` | 200 or 503, with each condition as JSON |
///
/// Requests that a web page may have made are refused with 403, see `AdminAccess`.
///
/// Its own loop answers also while a lane's is stuck, which is when the answer matters.
public actor AdminServer {
  private nonisolated let loop: EventLoop
  private nonisolated let health: Health
  private nonisolated let metrics: MetricRegistry
  private var server: HTTPServer?
  private var pulse: Timer?

  /// Connections at once.
  public static let maximumConnections = 64

  /// The server's loop runs everything of it.
  public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  /// Where it listens, with the port that was taken for 0.
  public private(set) var address: SocketAddress

  /// Starts its loop and listens.
  ///
  /// - Throws: when the address is in use or is none of this machine's; nothing is left running then.
  public static func start(at address: SocketAddress, health: Health, metrics: MetricRegistry) async throws(EventLoopError) -> AdminServer {
    let admin = AdminServer(address, health, metrics)
    do {
      try await admin.listen()
    } catch {
      await admin.close()
      throw error
    }
    return admin
  }

  private init(_ address: SocketAddress, _ health: Health, _ metrics: MetricRegistry) {
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
    let server = try HTTPServer(on: loop, at: address, configuration: configuration, routes: routes())
    self.server = server
    address = server.localAddress
    // Asked each second, a loop that stands still is known by the time that somebody wants to know.
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

  /// Answers what is being asked, and ends with its loop. Nothing of it may be called afterwards.
  public nonisolated func close() async {
    await stop()
    // Not in a method of the actor, which could not go on after its loop has ended.
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
