import EventLoop
import TestSupport
import Testing

@testable import HTTP

/// A server on a loop of its own, with routes that show how it behaves.
actor ServerFixture: LoopActor {
  nonisolated let loop: EventLoop
  private var server: HTTPServer?
  private var tunnel: TLSTunnel?
  private let held = HeldResponders()
  private let log = WebSocketLog()
  private let sourceLog = SourceLog()

  private init(_ loop: EventLoop) { self.loop = loop }

  /// Runs `body` with a server's fixture and port, and ends the server after it.
  ///
  /// `@concurrent`, since the body blocks on its sockets: after a call of the fixture it must not stay on the loop's thread. Nor may it hold
  /// one of the pool's, see `BlockingThreads`.
  /// - Parameter overTLS: whether the server has TLS, and the port is that of a tunnel to it.
  @concurrent static func with(
    _ configuration: HTTPServerConfiguration = quick(), webSocket: WebSocketConfiguration = carillon(), overTLS: Bool = false,
    _ body: @concurrent @Sendable (ServerFixture, Int) async throws -> Void
  ) async throws {
    let fixture = ServerFixture(EventLoop(name: "http-test"))
    var (configuration, port) = (configuration, 0)
    if overTLS { configuration.tls = try await TLSTunnel.server() }
    port = try await fixture.start(configuration, webSocket)
    if overTLS { port = try await fixture.startTunnel(to: port, try await TLSTunnel.client()) }
    do {
      try await withTaskExecutorPreference(BlockingThreads.shared) { try await body(fixture, port) }
    } catch {
      await fixture.stop()
      await fixture.loop.close()
      throw error
    }
    await fixture.stop()
    await fixture.loop.close()
  }

  /// The defaults, but that deadlines are looked at often, and none that a test does not set can pass on a busy machine.
  static func quick() -> HTTPServerConfiguration {
    var configuration = HTTPServerConfiguration()
    configuration.sweepMilliseconds = 20
    configuration.headMilliseconds = hangMilliseconds
    configuration.bodyMilliseconds = hangMilliseconds
    configuration.idleMilliseconds = hangMilliseconds
    configuration.writeMilliseconds = hangMilliseconds
    return configuration
  }

  static func carillon() -> WebSocketConfiguration {
    var configuration = WebSocketConfiguration()
    configuration.subprotocols = ["carillon.v1"]
    configuration.maximumMessageBytes = 70_000
    configuration.closeMilliseconds = hangMilliseconds
    return configuration
  }

  private func start(_ configuration: HTTPServerConfiguration, _ webSocket: WebSocketConfiguration) throws -> Int {
    var routes = HTTPRoutes()
    routes.add(.get, "/hello") { _, responder in responder.respond(HTTPResponse(.ok, text: "hello")) }
    routes.add(.post, "/echo") { request, responder in
      responder.respond(HTTPResponse(.ok, body: request.body.withUnsafeBytes { SharedBytes.make($0) }))
    }
    routes.add(.get, "/describe") { request, responder in
      let lines = [request.path, request.query ?? "-", request.queryParameter("name") ?? "-", request.headers["x-case"] ?? "-"]
      responder.respond(HTTPResponse(.ok, text: lines.joined(separator: "\n")))
    }
    routes.add(.get, "/held") { [held] _, responder in held.all.append(responder) }
    routes.add(.get, "/dropped") { _, _ in }
    routes.add(.get, "/large") { request, responder in
      let count = request.queryParameter("bytes").flatMap { Int($0) } ?? 0
      responder.respond(
        HTTPResponse(.ok, body: .make(count: count) { for index in $0.indices { $0[index] = UInt8(truncatingIfNeeded: index) } }))
    }
    Self.addPrefixes(&routes)
    addStreamed(&routes)
    let log = self.log
    routes.addWebSocket("/ws", webSocket) { request in
      switch request.queryParameter("refuse") {
      case "busy": .refuse(.tooManyRequests, "Too many connections of yours.\n", retryAfterSeconds: 7)
      case "full": .refuse(.serviceUnavailable, "No room.\n", retryAfterSeconds: 9)
      default:
        .accept(
          EchoHandler(
            log, sends: request.queryParameter("send").flatMap { Int($0) } ?? 0,
            frames: request.queryParameter("frames").flatMap { Int($0) } ?? .max))
      }
    }
    let server = try HTTPServer(on: loop, at: SocketAddress(host: "127.0.0.1", port: 0), configuration: configuration, routes: routes)
    self.server = server
    return server.localAddress.port
  }

  /// Routes that say which of them answers.
  private static func addPrefixes(_ routes: inout HTTPRoutes) {
    func addNamed(_ name: String, _ add: (@escaping HTTPRoutes.Handler) -> Void) {
      add { request, responder in responder.respond(HTTPResponse(.ok, text: "\(name) \(request.path)")) }
    }
    // The shorter one first, to be found last.
    addNamed("prefix") { routes.add(.get, prefix: "/media/", $0) }
    addNamed("deep prefix") { routes.add(.get, prefix: "/media/deep/", $0) }
    addNamed("deep prefix, put") { routes.add(HTTPMethod(rawValue: "PUT"), prefix: "/media/deep/", $0) }
    addNamed("path") { routes.add(.post, "/media/path", $0) }
  }

  /// Routes whose bodies are read piece by piece.
  private func addStreamed(_ routes: inout HTTPRoutes) {
    routes.add(.get, prefix: "/streamed/") { [loop, sourceLog] request, responder in
      let count = Int(request.path.dropFirst("/streamed/".count)) ?? 0
      let at = request.queryParameter("at").flatMap { Int($0) } ?? 0
      let fault = request.queryParameter("fault").flatMap { PatternSource.Fault(rawValue: $0) }.map { (kind: $0, at: at) }
      let status = request.queryParameter("status").flatMap { Int($0) } ?? 200
      let source = PatternSource(0..<count, fault: fault, on: loop, sourceLog)
      let response = HTTPResponse(HTTPStatus(rawValue: status), source: source)
      if request.queryParameter("forgotten") == nil { responder.respond(response) }
    }
    let file = HTTPRepresentation(entityTag: "the-file", count: 1_000_000)
    routes.add(.get, "/file") { [loop, sourceLog] request, responder in
      let selection = file.selection(for: request)
      guard let range = selection.range else {
        return responder.respond(HTTPResponse(selection.status, headers: selection.headers))
      }
      responder.respond(HTTPResponse(selection.status, headers: selection.headers, source: PatternSource(range, on: loop, sourceLog)))
    }
  }

  private func startTunnel(to port: Int, _ authorities: [UInt8]) async throws -> Int {
    let tunnel = TLSTunnel(on: loop, to: port, authorities)
    self.tunnel = tunnel
    return try await tunnel.listen()
  }

  private func stop() async {
    await tunnel?.close()
    held.all = []
    await closeServer(withinMilliseconds: 0)
  }

  func closeServer(withinMilliseconds: Int) async { await server?.close(withinMilliseconds: withinMilliseconds) }

  func pause(_ isPaused: Bool) { server?.isPaused = isPaused }

  var statistics: HTTPServerStatistics { server?.statistics ?? HTTPServerStatistics() }
  var tlsStatistics: TLSStatistics { server?.tlsStatistics ?? TLSStatistics() }
  var ends: [WebSocketEnd] { log.ends }
  var opened: Int { log.opened }
  var sources: SourceLog.Counts { sourceLog.counts }
  var heldCount: Int { held.all.count }
  var heldAreOpen: Bool { held.all.allSatisfy(\.isOpen) }

  /// Answers what waits at `/held`.
  func release(_ text: String) {
    let waiting = held.all
    held.all = []
    for responder in waiting { responder.respond(HTTPResponse(.ok, text: text)) }
  }

  /// Answers what waits at `/held` with a body that is read piece by piece, each twice.
  func releaseStreamed(_ count: Int) {
    let waiting = held.all
    held.all = []
    for responder in waiting {
      for _ in 0..<2 { responder.respond(HTTPResponse(.ok, source: PatternSource(0..<count, on: loop, sourceLog))) }
    }
  }

  /// Does something with every open connection.
  func withConnections<R: Sendable>(_ body: @Sendable ([WebSocketConnection]) -> R) -> R { body(log.connections) }

  /// Waits until a condition on the loop holds.
  func wait(_ location: SourceLocation = #_sourceLocation, until condition: @Sendable (isolated ServerFixture) -> Bool) async -> Bool {
    await eventually("the condition holds", location) { condition(self) }
  }
}

/// Requests that wait for the test to answer them.
final class HeldResponders {
  var all: [HTTPResponder] = []
}

/// What happened to all connections of a fixture.
final class WebSocketLog {
  var connections: [WebSocketConnection] = []
  var opened = 0
  var ends: [WebSocketEnd] = []
}

/// Sends back each message as it came.
final class EchoHandler: WebSocketHandler {
  private let log: WebSocketLog
  private let sends: Int
  private var frames: Int
  private var connection: WebSocketConnection?

  /// - Parameters:
  ///   - sends: frames of a kilobyte that are sent on opening, then the connection is closed.
  ///   - frames: that it takes.
  init(_ log: WebSocketLog, sends: Int = 0, frames: Int = .max) {
    self.log = log
    self.sends = sends
    self.frames = frames
  }

  func webSocketTakesFrame() -> Bool {
    frames -= 1
    return frames >= 0
  }

  func webSocketOpened(_ connection: WebSocketConnection) {
    self.connection = connection
    log.connections.append(connection)
    log.opened += 1
    guard sends > 0 else { return }
    for _ in 0..<sends { connection.send(.text(String(repeating: "x", count: 1024))) }
    connection.close(.goingAway, "that was all", pending: .sent)
  }

  func webSocketReceived(text: UnsafeRawBufferPointer) {
    connection?.send(.text(count: text.count) { $0.copyMemory(from: text) })
  }

  func webSocketReceived(binary: UnsafeRawBufferPointer) {
    connection?.send(.make(WebSocketFrame.Opcode.binary, binary.count) { $0.copyMemory(from: binary) })
  }

  func webSocketEnded(_ end: WebSocketEnd) {
    log.ends.append(end)
    log.connections.removeAll { $0 === connection }
    connection = nil
  }
}
