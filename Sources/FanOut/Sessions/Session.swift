import EventLoop
import HTTP
import JSON
import Notifications
import Store
import Worker

/// One connection of a device, from the upgrade to the end.
///
/// Its phases are types: a connection that has not said hello has no session's state.
final class Session: WebSocketHandler {
  /// The phases of a session.
  enum Phase {
    /// Connected; the hello must come by this second.
    case greeting(deadline: UInt32)
    /// The hello is being processed: registration, presence. It is stored apart, so that an open session does not take room for it.
    indirect case entering(Hello)
    /// Notifications flow.
    case open(OpenSession)
    /// Closed, by either side.
    case ended
  }

  /// No two sessions ever have the same.
  let generation: UInt64
  private(set) var connection: WebSocketConnection?
  private(set) var phase: Phase
  private var budget = FrameBudget()
  /// All sessions of the lane, which release this one when it ends.
  let sessions: Sessions

  init(_ sessions: Sessions, generation: UInt64, helloDeadline: UInt32) {
    self.sessions = sessions
    self.generation = generation
    phase = .greeting(deadline: helloDeadline)
  }

  /// The open session; nil before and after.
  var open: OpenSession? { if case .open(let open) = phase { open } else { nil } }

  /// Whether its hello is being processed, or waits for its turn.
  var isEntering: Bool { if case .entering = phase { true } else { false } }

  // MARK: The connection

  func webSocketOpened(_ connection: WebSocketConnection) {
    self.connection = connection
    sessions.connected(self)
  }

  func webSocketTakesFrame() -> Bool {
    var perSecond: Int?
    if case .greeting = phase {} else { perSecond = sessions.settings.limits.framesPerSecond }
    if budget.takesFrame(at: sessions.seconds, perSecond) { return true }
    sessions.metrics.limited(.frames)
    if connection?.isOpen == true { sessions.metrics.closed(.tooManyFrames) }
    return false
  }

  func webSocketReceived(text: UnsafeRawBufferPointer) {
    do throws(DeviceFrameError) {
      try received(try DeviceFrame(text))
    } catch {
      sessions.metrics.count(.bad)
      refuse(error)
    }
  }

  /// Refuses a frame that names its subject, a bounded number of times. Any other wrong frame ends the session.
  private func refuse(_ error: DeviceFrameError) {
    guard let open, let subject = error.subject else { return close(error.closeCode, "\(error)") }
    send { ServerFrames.refused(subject, reason: .badFrame, field: error.field, rule: error.rule, to: &$0) }
    if open.errs() { close(.tooManyErrors) }
  }

  func webSocketReceived(binary: UnsafeRawBufferPointer) {
    sessions.metrics.count(.bad)
    close(.unsupportedFrame, "frames of \(DeviceProtocol.subprotocol) are text")
  }

  func webSocketEnded(_ end: WebSocketEnd) {
    let former = open
    phase = .ended
    connection = nil
    sessions.ended(self, end)
    if let former { sessions.leave(former.token, generation) }
  }

  // MARK: Sending

  /// Sends a frame of the JSON that `write` writes.
  func send(_ write: (inout JSONWriter) -> Void) { connection?.send(sessions.frame(write)) }

  /// Sends a frame that the device has to answer.
  func sendDelivery(_ write: (inout JSONWriter) -> Void) {
    budget.sent()
    send(write)
  }

  /// Answers that a frame's request is done.
  func accept(_ request: String?) {
    if let request { send { ServerFrames.accepted(.request(request), to: &$0) } }
  }

  /// Closes with a code of the protocol's table; nothing more is received.
  ///
  /// - Parameter pending: whether frames that are not sent yet still are.
  func close(_ code: CloseCode, _ reason: String? = nil, pending: WebSocketConnection.Pending = .dropped) {
    guard let connection, connection.isOpen else { return }
    sessions.metrics.closed(code)
    connection.close(WebSocketCloseCode(rawValue: code.rawValue), reason ?? code.reason, pending: pending)
  }

  /// Tells the device when it may reconnect, and ends. Frames that were sent before still go out.
  func goAway(_ code: CloseCode, retryAfter milliseconds: Int) {
    sendGoAway(code, milliseconds)
    close(code, pending: .sent)
  }

  /// Ends for a reason that will pass.
  func goAway(_ code: CloseCode = .serviceUnavailable, retryAfterAtLeast milliseconds: Int) {
    goAway(code, retryAfter: sessions.owner?.retryAfter(atLeast: milliseconds) ?? milliseconds)
  }

  /// Ends at a limit of the lane.
  func goAway(at limit: Limit) {
    sessions.metrics.limited(limit)
    goAway(retryAfterAtLeast: 5000)
  }

  private func sendGoAway(_ code: CloseCode, _ milliseconds: Int) {
    send { ServerFrames.goaway(reconnectAfterMilliseconds: milliseconds, reason: "\(code.name)", to: &$0) }
  }

  // MARK: Time

  /// Ends a session that has not said hello in time, has not acknowledged in time, or has outlived its credential.
  ///
  /// - Parameter now: seconds since 1970.
  func checkDeadlines(now: Int64) {
    switch phase {
    case .greeting(let deadline) where deadline <= sessions.seconds: close(.helloTimeout)
    case .open(let open) where open.isOverdue: close(.acknowledgementTimeout)
    case .open(let open) where open.expiration <= now && !open.isLeaving:
      open.isLeaving = true
      goAway(.credentialExpired, retryAfterAtLeast: 0)
    default: break
    }
  }

  /// Tells the device to go away, since the lane drains; true while it still has to acknowledge deliveries.
  func drain(retryAfter milliseconds: Int) -> Bool {
    guard let open, open.isAwaitingAcknowledgements else {
      goAway(.draining, retryAfter: milliseconds)
      return false
    }
    open.isLeaving = true
    sendGoAway(.draining, milliseconds)
    return true
  }

  /// Ends a session that was told to go away and has acknowledged all; true when it has ended.
  ///
  /// - Parameter mustEnd: its time for acknowledgements is over.
  func hasDrained(mustEnd: Bool) -> Bool {
    guard let open else { return true }
    guard mustEnd || !open.isAwaitingAcknowledgements else { return false }
    close(.draining, pending: .sent)
    return true
  }

  // MARK: Frames

  private func received(_ frame: DeviceFrame) throws(DeviceFrameError) {
    switch (phase, frame) {
    case (.ended, _), (_, .unknown): break
    case (.greeting, .hello(let hello)) where hello.environment.map({ $0 != sessions.settings.environment }) ?? false:
      close(.wrongEnvironment)
    case (.greeting, .hello(let hello)):
      phase = .entering(hello)
      sessions.owner?.greeted(generation)
    case (.greeting, _): throw DeviceFrameError(frame: "", field: "type", rule: "The first frame is a hello.")
    case (_, .hello): throw DeviceFrameError(frame: "", field: "type", rule: "A session has one hello.")
    case (.entering, _): throw DeviceFrameError(frame: "", field: "type", rule: "The device waits for welcome before it sends more.")
    case (.open(let open), .ack(let ack)): open.acknowledge(ack)
    case (.open(let open), .response(let response)): sessions.owner?.responded(response, in: open)
    case (.open(let open), .link(let link)): open.link(link)
    case (.open(let open), .settings(let settings)):
      try open.check(settings)
      let movesSchedules = settings.timeZone.map { $0 != open.registration.timeZone } ?? false
      begin(.change(generation, .settings(settings)), of: open, movesSchedules: movesSchedules)
    case (.open(let open), .categories(let categories)): begin(.change(generation, .categories(categories)), of: open)
    case (.open(let open), .unregister(let unregister)): begin(.unregister(generation, unregister.request), of: open)
    }
  }

  /// Begins a change of the registration, unless too many run, or the device has changed too often in this minute.
  private func begin(_ task: LaneTask, of open: OpenSession, movesSchedules: Bool = false) {
    guard sessions.mayChange(open.tokenHash, movesSchedules: movesSchedules), open.beginsChange() else { return closeAsTooMany() }
    sessions.owner?.run(task)
  }

  /// Closes the connection of a device that has changed its registration too often.
  func closeAsTooMany() {
    sessions.metrics.limited(.changes)
    close(.tooManyFrames)
  }

  /// Welcomes the device, whose presence is written. Notifications flow from now on.
  func welcome(_ open: OpenSession) {
    guard case .entering(let hello) = phase else { return }
    let settings = sessions.settings
    send {
      ServerFrames.welcome(
        session: generation, now: WallClock.milliseconds(), pingSeconds: settings.limits.pingSeconds, window: settings.limits.window,
        rememberSeconds: settings.longestLifetime, quiet: sessions.people.quiet(open.owner.user),
        frameBytes: FanOutSettings.frameBytes, userTextBytes: Registration.userTextBytes, to: &$0)
    }
    phase = .open(open)
    sessions.opened(self, heartbeat: hello.heartbeat)
    open.begin()
  }
}
