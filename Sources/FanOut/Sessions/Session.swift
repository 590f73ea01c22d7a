import HTTP
import JSON
import Notifications
import Store
import Worker

/// One connection of a device, from the upgrade to the end: loop-confined.
///
/// Its phases are types: a connection that has not said hello has none of what a session has.
final class Session: WebSocketHandler {
  /// What a session is before its presence stands, and after.
  enum Phase {
    /// Connected; the hello must come by this second.
    case greeting(deadline: UInt32)
    /// The hello is being worked on: registration, presence.
    case entering(Hello)
    /// Notifications flow.
    case open(OpenSession)
    /// Closed, by either side.
    case ended
  }

  /// Unique among all sessions that there ever were.
  let generation: UInt64
  private(set) var connection: WebSocketConnection?
  private(set) var phase: Phase
  var budget = FrameBudget()
  private unowned let lane: FanOutCore

  init(_ lane: FanOutCore, generation: UInt64, helloDeadline: UInt32) {
    self.lane = lane
    self.generation = generation
    phase = .greeting(deadline: helloDeadline)
  }

  /// What the session is when notifications flow; nil before and after.
  var open: OpenSession? { if case .open(let open) = phase { open } else { nil } }

  /// Whether its hello is being worked on, or waits for that.
  var isEntering: Bool { if case .entering = phase { true } else { false } }

  // MARK: The connection

  func webSocketOpened(_ connection: WebSocketConnection) {
    self.connection = connection
    lane.connected(self)
  }

  func webSocketTakesFrame() -> Bool {
    var perSecond: Int?
    if case .greeting = phase {} else { perSecond = lane.settings.framesPerSecond }
    if budget.takesFrame(at: lane.seconds, perSecond) { return true }
    lane.metrics.limited(.frames)
    if connection?.isOpen == true { lane.metrics.closed(.tooManyFrames) }
    return false
  }

  func webSocketReceived(text: UnsafeRawBufferPointer) {
    do throws(DeviceFrameError) {
      try received(try DeviceFrame(text))
    } catch {
      lane.metrics.badFrames.increment()
      answer(error)
    }
  }

  /// What names the thing it is about is refused, a bounded number of times; anything else ends the session.
  private func answer(_ error: DeviceFrameError) {
    lane.frames.reset()
    guard let open, ServerFrames.refused(error, to: &lane.frames) else { return close(error.closeCode, "\(error)") }
    connection?.send(lane.frame())
    open.errors += 1
    if open.errors > OpenSession.mostErrors { close(.tooManyErrors) }
  }

  func webSocketReceived(binary: UnsafeRawBufferPointer) {
    lane.metrics.badFrames.increment()
    close(.unsupportedFrame, "frames of \(DeviceProtocol.subprotocol) are text")
  }

  func webSocketEnded(_ end: WebSocketEnd) {
    let former = phase
    phase = .ended
    connection = nil
    lane.ended(self, former, end)
  }

  /// Closes with a code of the protocol's table; nothing more is received.
  ///
  /// - Parameter pending: what becomes of frames that wait to be sent.
  func close(_ code: CloseCode, _ reason: String? = nil, pending: WebSocketConnection.Pending = .dropped) {
    guard let connection, connection.isOpen else { return }
    lane.metrics.closed(code)
    connection.close(WebSocketCloseCode(rawValue: code.rawValue), reason ?? code.reason, pending: pending)
  }

  // MARK: Frames

  private func received(_ frame: DeviceFrame) throws(DeviceFrameError) {
    switch (phase, frame) {
    case (.ended, _), (_, .unknown): break
    case (.greeting, .hello(let hello)):
      phase = .entering(hello)
      lane.enter(self)
    case (.greeting, _): throw DeviceFrameError(frame: "", field: "type", rule: "The first frame is a hello.")
    case (_, .hello): throw DeviceFrameError(frame: "", field: "type", rule: "A session has one hello.")
    case (.entering, _): throw DeviceFrameError(frame: "", field: "type", rule: "The device waits for welcome before it sends more.")
    case (.open(let open), .ack(let ack)): acknowledge(ack, open)
    case (.open(let open), .response(let response)): lane.respond(response, self, open)
    case (.open(let open), .settings(let settings)): lane.change(.settings(settings), self, open)
    case (.open(let open), .categories(let categories)): lane.change(.categories(categories), self, open)
    case (.open(let open), .unregister(let unregister)): lane.unregister(unregister, self, open)
    }
  }

  private func acknowledge(_ ack: AckFrame, _ open: OpenSession) {
    ack.forEachDelivery { number in
      guard let entry = open.flow.acknowledge(number) else { return }
      lane.toldGap(of: open, generation)
      lane.settle(entry, number: number, as: ack.isUpdated(number) ? .updated : .delivered, self, open)
    }
    ack.forEachDropped { number, reason in
      guard let entry = open.flow.acknowledge(number) else { return }
      lane.toldGap(of: open, generation)
      lane.settle(entry, number: number, dropped: reason, self, open)
    }
    perform(open.flow.afterAcknowledgements(), open)
  }

  /// The session's presence stands: notifications flow from now on.
  func welcome(_ open: OpenSession) {
    phase = .open(open)
    perform(open.flow.look(), open)
  }

  /// Does what the flow asks for.
  func perform(_ action: SessionFlow.Action, _ open: OpenSession) {
    switch action {
    case .nothing: break
    case .page(let count): lane.page(of: open.token, generation, count: count)
    }
  }
}
