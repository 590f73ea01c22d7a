import EventLoop
public import Testing

/// A server that does as it is told, of HTTP knows only where a request ends, and remembers what it was asked.
public actor ScriptedServer {
  /// What it does when it was asked.
  public enum Answer: Sendable {
    /// It says this.
    case reply(String)
    /// And closes the connection.
    case last(String)
    /// Then the same again and again, as fast as it is taken.
    case endless(String, then: String)
    /// Nothing.
    case silence
  }

  private nonisolated let loop = EventLoop(name: "scripted")
  /// Its own loop.
  public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
  private let state = ScriptedState()
  private var listener: Listener?

  /// Runs `body` with a server and its port.
  @concurrent public static func with(
    _ answer: @escaping @Sendable (String) -> Answer, _ body: @concurrent @Sendable (ScriptedServer, Int) async throws -> Void
  ) async throws {
    let server = ScriptedServer()
    let port = try await server.listen(answer)
    do { try await body(server, port) } catch {
      await server.loop.close()
      throw error
    }
    await server.loop.close()
  }

  private func listen(_ answer: @escaping @Sendable (String) -> Answer) throws -> Int {
    let state = state
    let listener = try Listener(on: loop, at: SocketAddress(host: "127.0.0.1", port: 0)) { stream in
      state.connections += 1
      state.open += 1
      stream.handler = ScriptedConnection(stream, state, answer)
      stream.startReading()
    }
    self.listener = listener
    return listener.localAddress.port
  }

  /// What it was asked, head and body.
  public var requests: [String] { state.requests }
  /// The connections that there were.
  public var connections: Int { state.connections }
  /// The connections that are open.
  public var open: Int { state.open }
  /// The bytes that it has said.
  public var sent: Int { state.sent }

  /// Waits until a condition holds.
  public func eventually(
    _ what: String, _ location: SourceLocation = #_sourceLocation, _ condition: @Sendable (isolated ScriptedServer) -> Bool
  ) async {
    await TestSupport.eventually(what, location) { condition(self) }
  }
}

private final class ScriptedState {
  var requests: [String] = []
  var connections = 0
  var open = 0
  var sent = 0
}

private final class ScriptedConnection: StreamHandler {
  private let stream: Stream
  private let state: ScriptedState
  private let answer: (String) -> ScriptedServer.Answer
  private var received: [UInt8] = []
  private var repeated = ""

  init(_ stream: Stream, _ state: ScriptedState, _ answer: @escaping (String) -> ScriptedServer.Answer) {
    self.stream = stream
    self.state = state
    self.answer = answer
  }

  func streamReceived(_ bytes: UnsafeRawBufferPointer) {
    received.append(contentsOf: bytes)
    let text = String(decoding: received, as: UTF8.self)
    guard let head = text.split(separator: "\r\n\r\n", maxSplits: 1, omittingEmptySubsequences: false).first,
      head.utf8.count < text.utf8.count
    else { return }
    let length = head.split(separator: "\r\n").first { $0.lowercased().hasPrefix("content-length: ") }?.dropFirst(16)
    guard received.count >= head.utf8.count + 4 + (length.flatMap { Int($0) } ?? 0) else { return }
    received = []
    state.requests.append(text)
    switch answer(text) {
    case .reply(let text): write(text)
    case .last(let text):
      write(text)
      stream.finish(withinMilliseconds: 5_000)
    case .endless(let head, let piece):
      repeated = piece
      write(head + piece)
    case .silence: break
    }
  }

  private func write(_ text: String) {
    guard !text.isEmpty else { return }
    state.sent += text.utf8.count
    stream.write(.make(text))
  }

  func streamDrained() { write(repeated) }

  func streamEnded(_ end: StreamEnd) {
    state.open -= 1
    repeated = ""
  }
}
