import EventLoop

/// What the WebSocket connections of one route, or of one client, share: the rules, the pooled readers, the deadlines. Loop-confined.
final class WebSocketEndpoint {
  enum Role { case server, client }

  let role: Role
  let loop: EventLoop
  let configuration: WebSocketConfiguration
  let rules: MessageAssembly.Rules
  let sweep: Sweep
  /// Told of each end, before the handler is.
  var onEnd: (WebSocketEnd) -> Void = { _ in }
  /// Told when a connection's stream is closed, with what it is counted under.
  var onStreamEnd: (PeerNetwork?) -> Void = { _ in }

  private var readers = Pool(limit: 64) { FrameReader() }
  private var random = SystemRandomNumberGenerator()
  private var ends: [(connection: WebSocketConnection, end: WebSocketEnd)] = []
  private var endTimer: Timer?

  init(_ role: Role, on loop: EventLoop, _ configuration: WebSocketConfiguration, _ sweep: Sweep) {
    self.role = role
    self.loop = loop
    self.configuration = configuration
    self.sweep = sweep
    rules = MessageAssembly.Rules(
      expectsMask: role == .server, maximumMessageBytes: configuration.maximumMessageBytes, tooBigCode: configuration.tooBigCode)
  }

  func takeReader() -> FrameReader { readers.take() }

  func giveBack(_ reader: FrameReader) { readers.giveBack(reader) }

  /// A mask that nobody can foresee (RFC 6455, section 10.3).
  func mask() -> UInt32 { random.next() }

  /// When a connection that is quiet from now on gets its next ping: by lot, so that those that were heard of together part again.
  func nextPing(after now: UInt64) -> UInt64 {
    let whole = UInt64(max(0, configuration.pingMilliseconds))
    return whole == 0 ? Sweep.never : now + whole - UInt64.random(in: 0...whole / 4, using: &random)
  }

  /// Remembers an end, of which the handler is told when none of its calls is on the stack.
  func report(_ end: WebSocketEnd, of connection: WebSocketConnection) {
    onEnd(end)
    ends.append((connection, end))
    if endTimer == nil {
      let timer = Timer(on: loop) { [weak self] in self?.deliverEnds() }
      timer.start(after: 0)
      endTimer = timer
    }
  }

  /// Tells the handlers of the ends that are remembered.
  func deliverEnds() {
    while !ends.isEmpty {
      let delivered = ends
      ends = []
      for (connection, end) in delivered { connection.deliver(end) }
    }
    endTimer?.close()
    endTimer = nil
  }
}
