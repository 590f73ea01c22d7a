import EventLoop

/// The shared rules, pooled readers and deadlines of one route's or one client's connections.
final class WebSocketEndpoint {
  enum Role { case server, client }

  let role: Role
  let loop: EventLoop
  let configuration: WebSocketConfiguration
  let sweep: Sweep
  /// Called after a connection's stream is closed, with its network in the count.
  var onStreamEnd: (PeerNetwork?) -> Void = { _ in }

  private var readers = Pool { FrameReader() }
  private var random = SystemRandomNumberGenerator()
  private var ends: [(connection: WebSocketConnection, end: WebSocketEnd)] = []
  private var endTimer: Timer?

  init(_ role: Role, on loop: EventLoop, _ configuration: WebSocketConfiguration, _ sweep: Sweep) {
    self.role = role
    self.loop = loop
    self.configuration = configuration
    self.sweep = sweep
  }

  func takeReader() -> FrameReader { readers.take() }

  func giveBack(_ reader: FrameReader) { readers.giveBack(reader) }

  /// An unpredictable mask (RFC 6455, section 10.3).
  func mask() -> UInt32 { random.next() }

  /// The next ping of a connection that stays quiet. It is random, so that simultaneous connections drift apart.
  func nextPing(after now: UInt64) -> UInt64 {
    let whole = UInt64(max(0, configuration.pingMilliseconds))
    return whole == 0 ? Sweep.never : now + whole - UInt64.random(in: 0...whole / 4, using: &random)
  }

  /// Stores an end. Its handler is called when none of its calls is on the stack.
  func report(_ end: WebSocketEnd, of connection: WebSocketConnection) {
    ends.append((connection, end))
    if endTimer == nil { endTimer = Timer(on: loop, after: 0) { [weak self] in self?.deliverEnds() } }
  }

  /// Calls the handlers of the stored ends.
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
