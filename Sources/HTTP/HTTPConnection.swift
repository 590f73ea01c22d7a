import EventLoop
import Glibc

/// One client's connection while it speaks HTTP. It handles one request at a time.
///
/// Without a request it holds no parser and no bytes. Pipelined requests wait in the connection (at most one read) and in the kernel.
final class HTTPConnection: StreamHandler, SweepMember {
  private enum Phase {
    /// Between requests.
    case idle
    /// A request is arriving.
    case head, body
    /// A handler has the request.
    case handling
    /// The response's body is sent piece by piece; each piece follows when the client has taken the one before.
    case streaming(StreamedBody)
    /// Too much of the last response is unsent to take another request.
    case congested
    /// The last response is being sent, and nothing more is read.
    case closing
    case ended
  }

  /// The unsent bytes of responses up to which the next request is read.
  private static let congestionBytes = 262_144

  private let server: HTTPServer
  private let stream: Stream
  /// The network in the count of connections, if connections per address are limited.
  private let network: PeerNetwork?
  private var isRefusal = false
  private var phase = Phase.idle
  /// When the last phase with a deadline began, in milliseconds of the loop's clock.
  private var phaseBegan: UInt64 = 0
  private var parser: MessageParser?
  private var pipelined: [UInt8] = []
  private var isFeeding = false
  private var saidContinue = false
  // Properties of the present request that its response needs.
  private var isHead = false
  private var persistence = HTTPResponse.Persistence.kept
  var sweepSlot: Int32 = -1

  init(_ server: HTTPServer, _ stream: Stream, of network: PeerNetwork?) {
    self.server = server
    self.stream = stream
    self.network = network
  }

  /// Begins to read.
  func start() {
    phaseBegan = now
    server.sweep.add(self, deadline: phaseBegan + UInt64(server.configuration.headMilliseconds))
    stream.handler = self
    if !server.isPaused { stream.startReading() }
  }

  /// Begins with a refusal, without reading a request.
  func startRefusing(_ response: HTTPResponse) {
    isRefusal = true
    server.sweep.add(self, deadline: Sweep.never)
    stream.handler = self
    stream.startReading()
    finish(with: response)
  }

  /// Since when the client must send a request or the rest of one, or must close an answered connection; nil if it need not.
  ///
  /// The deadline does not tell: an upload has a shorter one than a connection that has long been idle.
  var silentSince: UInt64? {
    switch phase {
    case .idle, .head, .body: phaseBegan
    // A refused client does not count as a connection.
    case .closing: !isRefusal && stream.pendingBytes == 0 ? phaseBegan : nil
    case .handling, .streaming, .congested, .ended: nil
    }
  }

  /// Whether the client has sent a request that lies in the kernel: the server is paused, or has not come to it in this turn.
  var hasUnreadRequest: Bool {
    guard case .idle = phase, let descriptor = stream.descriptor else { return false }
    var byte: UInt8 = 0
    return recv(descriptor, &byte, 1, Int32(MSG_PEEK | MSG_DONTWAIT)) > 0
  }

  var awaitsResponse: Bool { if case .handling = phase { true } else { false } }

  /// Whether a request may begin or continue.
  private var takesRequest: Bool {
    switch phase {
    case .idle, .head, .body: true
    case .handling, .streaming, .congested, .closing, .ended: false
    }
  }

  private var now: UInt64 { server.loop.milliseconds() }

  private func setDeadline(after milliseconds: Int) {
    phaseBegan = now
    server.sweep.set(phaseBegan + UInt64(milliseconds), for: self)
  }

  // MARK: Reading

  func streamReceived(_ bytes: UnsafeRawBufferPointer) { feed(bytes) }

  private func feed(_ bytes: UnsafeRawBufferPointer) {
    var rest = bytes
    isFeeding = true
    defer { isFeeding = false }
    while !rest.isEmpty {
      switch phase {
      case .idle where !server.isPaused: beginRequest()
      case .head, .body: break
      case .idle, .handling, .streaming, .congested:
        pipelined.append(contentsOf: rest)
        stream.stopReading()
        return
      case .closing, .ended: return
      }
      guard let parser else { return }
      let (consumed, outcome) = parser.parse(rest)
      rest = UnsafeRawBufferPointer(rebasing: rest[min(consumed, rest.count)...])
      switch outcome {
      case .incomplete: requestGrew(parser)
      case .failed(let failure): return refuse(failure)
      case .complete:
        if let webSocket = dispatch(parser) {
          if !rest.isEmpty { webSocket.streamReceived(rest) }
          return
        }
        if awaitsResponse, !server.configuration.readsWhileHandling { stream.stopReading() }
      }
    }
  }

  private func beginRequest() {
    phase = .head
    isHead = false
    parser = server.takeParser()
    saidContinue = false
    setDeadline(after: server.configuration.headMilliseconds)
  }

  private func requestGrew(_ parser: MessageParser) {
    guard parser.isHeadComplete else { return }
    if case .head = phase {
      phase = .body
      setDeadline(after: server.configuration.bodyMilliseconds)
    }
    if parser.expectsContinue, !saidContinue {
      saidContinue = true
      stream.write(server.continueResponse)
    }
  }

  /// Hands a whole request to its route; returns the WebSocket after an upgrade.
  private func dispatch(_ parser: MessageParser) -> WebSocketConnection? {
    self.parser = nil
    defer { server.giveBack(parser) }
    let method = parser.method
    isHead = method == .head
    persistence = server.isDraining || !parser.keepsAlive ? .closed : parser.isVersion11 ? .kept : .keptExplicitly
    phase = .handling
    server.sweep.set(Sweep.never, for: self)
    guard let target = RequestTarget(parser.target) else {
      refuse(.malformed("its target is no path"))
      return nil
    }
    let request = HTTPRequest(
      method: method, path: target.path, query: target.query, headers: parser.headers, body: parser.body)
    server.statistics.requests += 1
    switch server.routes.match(method, target.path) {
    case .unknown: respond(server.configuration.refusal(.notFound, "There is nothing at this path."))
    case .otherMethod(let allow):
      var response = server.configuration.refusal(.methodNotAllowed, "This path knows \(allow).")
      response.headers.append(("Allow", allow))
      respond(response)
    case .found(.plain(let handler)): handler(request, HTTPResponder(self))
    case .found(.webSocket(let route)): return upgrade(request, route, isAsked: parser.asksForWebSocket)
    }
    return nil
  }

  // MARK: Answering

  /// Sends the response to the present request, and continues with the next one.
  func respond(_ response: HTTPResponse) {
    server.loop.preconditionOnLoop()
    guard awaitsResponse else {
      response.body?.close()
      return
    }
    if server.isDraining { persistence = .closed }
    let hasRoom = stream.pendingBytes == 0
    stream.write(response.head(date: server.date(), persistence))
    if !isHead, !response.status.forbidsBody, let body = response.body, body.count > 0 {
      switch body {
      case .bytes(let bytes): stream.write(bytes)
      case .streamed(let body): return startStreaming(body, hasRoom: hasRoom)
      }
    }
    response.body?.close()
    if persistence == .closed {
      close(withinMilliseconds: server.configuration.writeMilliseconds)
    } else if stream.pendingBytes > Self.congestionBytes {
      becomeCongested()
    } else {
      becomeIdle()
    }
  }

  /// - Parameter hasRoom: whether only the head is unsent. Otherwise the first piece waits like every other.
  private func startStreaming(_ body: StreamedBody, hasRoom: Bool) {
    phase = .streaming(body)
    body.start(on: server.loop) { [weak self] in self?.sendPiece() }
    // A client that has closed its sending half must still get everything. Reading would take it for gone.
    stream.stopReading()
    if hasRoom { sendPiece() } else { setDeadline(after: server.configuration.writeMilliseconds) }
  }

  private func sendPiece() {
    guard case .streaming(let body) = phase else { return }
    guard let piece = body.read() else { return cut() }
    stream.write(piece)
    if body.remaining > 0 {
      setDeadline(after: server.configuration.writeMilliseconds)
    } else if persistence == .closed || server.isDraining {
      close(withinMilliseconds: server.configuration.writeMilliseconds)
    } else {
      becomeCongested()
    }
  }

  /// Closes after everything is sent.
  private func close(withinMilliseconds milliseconds: Int) {
    phase = .closing
    stream.finish(withinMilliseconds: milliseconds, readingAtMost: server.configuration.lingerBytes)
  }

  /// The response is queued: waits until the client has taken it.
  private func becomeCongested() {
    phase = .congested
    setDeadline(after: server.configuration.writeMilliseconds)
  }

  /// Closes at once, even within a response.
  private func cut() {
    if case .streaming(let body) = phase { body.close() }
    // Not `closing`: a connection that is cut must not be replaced for another client of the same turn.
    phase = .ended
    stream.close()
  }

  private func becomeIdle() {
    phase = .idle
    setDeadline(after: server.configuration.idleMilliseconds)
    // If the answer came from within `feed`, its loop continues with its bytes. Otherwise the waiting bytes are next.
    if !isFeeding { resume() }
  }

  private func resume() {
    guard !server.isPaused else { return }
    let waiting = pipelined
    pipelined = []
    waiting.withUnsafeBytes { feed($0) }
    guard takesRequest else { return }
    // One of these requests may have paused the server.
    if server.isPaused { stream.stopReading() } else { stream.startReading() }
  }

  /// The server reads no requests any more, or reads them again.
  func pauseChanged() {
    // A running `feed` looks at the pause by itself.
    guard takesRequest, !isFeeding else { return }
    if server.isPaused { stream.stopReading() } else { resume() }
  }

  private func refuse(_ failure: MessageFailure) {
    let (status, text) = failure.refusal
    server.statistics.refused[status.rawValue, default: 0] += 1
    finish(with: server.configuration.refusal(status, text))
  }

  /// Sends an error response and closes. It reads a little longer, so that a client that is still sending sees the response.
  private func finish(with response: HTTPResponse) {
    releaseParser()
    stream.write(response.head(date: server.date(), .closed))
    if case .bytes(let bytes) = response.body, !isHead { stream.write(bytes) }
    close(withinMilliseconds: server.configuration.lingerMilliseconds)
  }

  private func releaseParser() {
    if let parser { server.giveBack(parser) }
    parser = nil
  }

  private func upgrade(_ request: HTTPRequest, _ route: WebSocketRoute, isAsked: Bool) -> WebSocketConnection? {
    let judgement =
      server.isDraining
      ? .refuse(HTTPResponse(.serviceUnavailable, text: "The server is shutting down.\n")) : route.judge(request, isAsked: isAsked)
    switch judgement {
    case .refuse(let response):
      persistence = .closed
      respond(response)
      return nil
    case .accept(let response, let handler):
      guard let endpoint = route.endpoint, awaitsResponse else { return nil }
      phase = .ended
      server.sweep.remove(self)
      stream.write(response)
      let connection = WebSocketConnection(endpoint, stream, handler, of: network)
      connection.start()
      return connection
    }
  }

  // MARK: Ending

  func deadlinePassed(now: UInt64) {
    switch phase {
    case .idle:
      if stream.pendingBytes > 0 { stream.close() } else { close(withinMilliseconds: server.configuration.lingerMilliseconds) }
    case .head, .body:
      server.statistics.timedOut += 1
      finish(with: server.configuration.refusal(.requestTimeout, "The request took too long."))
    case .streaming, .congested: cut()
    case .handling, .closing, .ended: break
    }
  }

  /// The server is closing: closes at once if idle, otherwise after the response.
  func drain() {
    switch phase {
    case .idle: close(withinMilliseconds: server.configuration.lingerMilliseconds)
    case .congested: close(withinMilliseconds: server.configuration.writeMilliseconds)
    case .head, .body, .handling, .streaming, .closing, .ended: break
    }
  }

  func abort() { cut() }

  func streamDrained() {
    switch phase {
    case .streaming(let body): body.waitForTurn()
    case .congested: becomeIdle()
    case .idle, .head, .body, .handling, .closing, .ended: break
    }
  }

  func streamEnded(_ end: StreamEnd) {
    if case .streaming(let body) = phase { body.close() }
    phase = .ended
    releaseParser()
    pipelined = []
    server.sweep.remove(self)
    if isRefusal { server.refusalEnded() }
    server.streamEnded(of: network)
  }
}
