public import EventLoop

/// One WebSocket connection, of a server or of a client.
///
/// Between frames it holds no buffer and no parser.
public final class WebSocketConnection: SweepMember, StreamHandler {
  private static let maximumWaitingPongs = 16

  private enum Phase {
    case open
    /// This side's close frame is sent, and the peer's is awaited.
    case closing
    /// Nothing more of the peer is read; the stream is being closed.
    case finishing
    case ended
  }

  /// What `close` does with queued frames that were not sent yet.
  public enum Pending: Sendable {
    /// They are dropped, so that the peer is told soonest.
    case dropped
    /// They are sent before the close frame.
    case sent
  }

  private let endpoint: WebSocketEndpoint
  private let stream: Stream
  private let network: PeerNetwork?
  // The small ones are adjacent: there are many idle connections, and so each takes 128 bytes.
  private var phase = Phase.open
  private var awaitsPong = false
  /// Pongs since the kernel last had everything that was sent; then `lastPong` follows.
  private var waitingPongs: UInt8 = 0
  private var isReported = false
  /// Whether the kernel has the response to the upgrade. Before that no queued bytes can be dropped, since it would be among them.
  private var isEstablished: Bool
  private var closeCode = WebSocketCloseCode.abnormal
  private var assembly = MessageAssembly()
  var sweepSlot: Int32 = -1
  /// Bytes received during the wait for the peer's close frame.
  private var closingBytes: Int32 = 0
  private var reader: FrameReader?
  private var lastHeard: UInt64 = 0
  private var lastPong: WebSocketFrame?
  private var closeReason = ""

  /// Gets the events; nil after the end.
  public private(set) var handler: (any WebSocketHandler)?

  /// - Parameter network: the network under which its server counts it.
  init(_ endpoint: WebSocketEndpoint, _ stream: Stream, _ handler: any WebSocketHandler, of network: PeerNetwork? = nil) {
    self.endpoint = endpoint
    self.stream = stream
    self.network = network
    self.handler = handler
    isEstablished = endpoint.role == .client
  }

  /// Takes over the stream.
  func start() {
    stream.handler = self
    lastHeard = endpoint.loop.milliseconds()
    endpoint.sweep.add(self, deadline: endpoint.nextPing(after: lastHeard))
    handler?.webSocketOpened(self)
    stream.startReading()
  }

  // MARK: The owner's side

  /// Whether frames can be sent: neither side has begun to close.
  public var isOpen: Bool { phase == .open }

  /// The bytes that wait for the peer.
  public var outboxBytes: Int { stream.pendingBytes }

  /// Queues a frame; all frames of one turn of the loop go out in one write.
  ///
  /// A frame that would exceed the outbox's limit drops all waiting bytes, and closes the connection with the configured code.
  /// - Returns: whether it was queued.
  @discardableResult
  public func send(_ frame: WebSocketFrame) -> Bool {
    endpoint.loop.preconditionOnLoop()
    guard phase == .open else { return false }
    let bytes = endpoint.role == .client ? frame.masked(with: endpoint.mask()) : frame.bytes
    if stream.pendingBytes + bytes.count > endpoint.configuration.maximumOutboxBytes {
      fail(endpoint.configuration.outboxFull)
      return false
    }
    stream.write(bytes)
    return true
  }

  /// Begins to close. Nothing more is received, and `webSocketEnded` comes after the peer's answer or the time limit.
  ///
  /// - Parameters:
  ///   - code: one that may be sent.
  ///   - reason: at most 123 bytes are sent.
  ///   - pending: what happens to waiting frames. A frame that was sent in part is always completed.
  public func close(_ code: WebSocketCloseCode, _ reason: String = "", pending: Pending = .dropped) {
    endpoint.loop.preconditionOnLoop()
    precondition(code.isSendable, "close code \(code) may not stand in a close frame")
    guard phase == .open else { return }
    phase = .closing
    closeCode = code
    closeReason = reason
    if pending == .dropped { discardPending() }
    writeControl(.close(code, reason))
    setDeadline(after: endpoint.configuration.closeMilliseconds)
  }

  /// Cuts the connection.
  public func abort() {
    endpoint.loop.preconditionOnLoop()
    guard phase != .ended else { return }
    report(phase == .closing ? WebSocketEnd(.closeUnanswered, closeCode, closeReason) : WebSocketEnd(.aborted, .abnormal))
    phase = .finishing
    stream.close()
  }

  // MARK: The peer's side

  /// Takes bytes of its stream.
  public func streamReceived(_ bytes: UnsafeRawBufferPointer) {
    guard phase == .open || phase == .closing else { return }
    let reader = self.reader ?? endpoint.takeReader()
    self.reader = nil
    reader.feed(bytes)
    while true {
      switch reader.next() {
      case .needsMore:
        if reader.isBetweenFrames { endpoint.giveBack(reader) } else { self.reader = reader }
        return countWhileClosing(bytes.count)
      case .broken: return fail(WebSocketEnd(.protocolViolation, .protocolError, "a frame that is none"))
      case .chunk(let chunk):
        take(chunk)
        // In the middle of its bytes the reader cannot be used again.
        guard phase == .open || phase == .closing else { return }
      }
    }
  }

  /// A peer that keeps sending after the close frame is read only up to a limit.
  private func countWhileClosing(_ bytes: Int) {
    guard phase == .closing else { return }
    closingBytes += Int32(bytes)
    guard closingBytes > endpoint.configuration.maximumMessageBytes + endpoint.configuration.closeBytes else { return }
    report(WebSocketEnd(.closeUnanswered, closeCode, closeReason))
    finish()
  }

  private func take(_ chunk: FrameReader.Chunk) {
    if chunk.isFirst, handler?.webSocketTakesFrame() == false { return fail(endpoint.configuration.tooManyFrames) }
    let step = assembly.take(chunk, isMasked: endpoint.role == .server, endpoint.configuration)
    if chunk.isLast {
      lastHeard = endpoint.loop.milliseconds()
      awaitsPong = false
    }
    switch step {
    case .wait, .pong: break
    case .violation(let end): fail(end)
    case .close(let payload): payload.withBytes(of: chunk) { peerCloses(ClosePayload.read($0)) }
    // After this side's close frame only the peer's matters.
    case .text(let payload): if phase == .open { payload.withBytes(of: chunk) { handler?.webSocketReceived(text: $0) } }
    case .binary(let payload): if phase == .open { payload.withBytes(of: chunk) { handler?.webSocketReceived(binary: $0) } }
    case .ping(let payload): if phase == .open { payload.withBytes(of: chunk) { answerPing($0) } }
    }
  }

  /// A peer that does not read its pongs gets no more. After a few pongs only the last one waits (RFC 6455, section 5.5.3).
  private func answerPing(_ payload: UnsafeRawBufferPointer) {
    guard waitingPongs < Self.maximumWaitingPongs else { return lastPong = .pong(payload) }
    waitingPongs += 1
    send(.pong(payload))
  }

  private func peerCloses(_ payload: Result<ClosePayload, WebSocketEnd>) {
    switch payload {
    case .failure(let end): fail(end)
    case .success(let said):
      if phase == .open {
        writeControl(.close(said.code == .none ? nil : said.code, ""))
        report(WebSocketEnd(.peerClosed, said.code, said.reason))
      } else {
        report(WebSocketEnd(.closed, closeCode, closeReason))
      }
      finish()
    }
  }

  /// Ends the connection for a reason that the peer cannot change.
  private func fail(_ end: WebSocketEnd) {
    if phase == .open {
      discardPending()
      writeControl(.close(end.code, end.reason))
      report(end)
    } else {
      // The peer was told another reason, and has not agreed.
      report(WebSocketEnd(.closeUnanswered, closeCode, closeReason))
    }
    finish()
  }

  private func finish() {
    phase = .finishing
    reader = nil
    endpoint.sweep.set(Sweep.never, for: self)
    stream.finish(withinMilliseconds: endpoint.configuration.closeMilliseconds, readingAtMost: endpoint.configuration.closeBytes)
  }

  private func discardPending() {
    if isEstablished { stream.discardPending() }
  }

  private func writeControl(_ frame: WebSocketFrame) {
    stream.write(endpoint.role == .client ? frame.masked(with: endpoint.mask()) : frame.bytes)
  }

  // MARK: Time

  private func setDeadline(after milliseconds: Int) {
    endpoint.sweep.set(endpoint.loop.milliseconds() + UInt64(max(0, milliseconds)), for: self)
  }

  func deadlinePassed(now: UInt64) {
    switch phase {
    case .open:
      if awaitsPong { return fail(endpoint.configuration.pingTimeout) }
      let quiet = now - min(now, lastHeard)
      let interval = UInt64(max(0, endpoint.configuration.pingMilliseconds))
      if quiet >= interval - interval / 4 {
        awaitsPong = true
        writeControl(.ping)
        setDeadline(after: endpoint.configuration.pongMilliseconds)
      } else {
        endpoint.sweep.set(endpoint.nextPing(after: lastHeard), for: self)
      }
    case .closing:
      report(WebSocketEnd(.closeUnanswered, closeCode, closeReason))
      phase = .finishing
      stream.close()
    case .finishing, .ended: break
    }
  }

  // MARK: The end

  /// The server is closing: queued frames are still sent.
  func drain() { close(.goingAway, "the server is shutting down", pending: .sent) }

  /// Notes that its stream has written all bytes.
  public func streamDrained() {
    isEstablished = true
    waitingPongs = 0
    if let pong = lastPong {
      lastPong = nil
      send(pong)
    }
  }

  /// Notes the end of its stream.
  public func streamEnded(_ streamEnd: StreamEnd) {
    let wasClosing = phase == .closing
    phase = .ended
    reader = nil
    if wasClosing {
      report(WebSocketEnd(.closeUnanswered, closeCode, closeReason))
    } else {
      var reason = "the peer cut the connection"
      if case .failed(let error) = streamEnd { reason = error.description }
      report(WebSocketEnd(.connectionLost, .abnormal, reason))
    }
    endpoint.sweep.remove(self)
    endpoint.onStreamEnd(network)
  }

  private func report(_ end: WebSocketEnd) {
    guard !isReported else { return }
    isReported = true
    assembly = MessageAssembly()
    endpoint.report(end, of: self)
  }

  func deliver(_ end: WebSocketEnd) {
    let handler = self.handler
    self.handler = nil
    handler?.webSocketEnded(end)
  }
}
