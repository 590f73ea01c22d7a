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
public enum AdminServer {
  /// The most connections at once.
  public static let maximumConnections = 64

  /// Starts it; see `LoopServer.start`.
  ///
  /// - Parameter tls: TLS of its connections; nil for none.
  public static func start(
    at address: SocketAddress, health: Health, metrics: MetricRegistry, tls: TLSServerConfiguration? = nil
  ) async throws(EventLoopError) -> LoopServer {
    var configuration = HTTPServerConfiguration()
    configuration.maximumConnections = maximumConnections
    configuration.replacesSilent = true
    configuration.maximumBodyBytes = 0
    configuration.tls = tls
    // Asks each second, so that a stuck loop is known before an operator asks.
    return try await LoopServer.start("admin", at: address, configuration, eachSecond: { _ = health.silentLoops() }) {
      routes(AdminAccess(isLoopback: $0.isLoopback), health, metrics)
    }
  }

  private static func routes(_ access: AdminAccess, _ health: Health, _ metrics: MetricRegistry) -> HTTPRoutes {
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
    add("/metrics") { HTTPResponse(.ok, text: metrics.text, contentType: "text/plain; version=0.0.4; charset=utf-8") }
    add("/livez") {
      let silent = health.silentLoops()
      let text = silent.map { "\($0.name) has not turned for \(ReadableText.duration(milliseconds: Int64($0.milliseconds)))\n" }.joined()
      return HTTPResponse(silent.isEmpty ? .ok : .serviceUnavailable, text: silent.isEmpty ? "alive\n" : text)
    }
    add("/readyz") {
      let (isReady, json) = health.snapshot
      return HTTPResponse(isReady ? .ok : .serviceUnavailable, text: json + "\n", contentType: "application/json")
    }
    return routes
  }
}
