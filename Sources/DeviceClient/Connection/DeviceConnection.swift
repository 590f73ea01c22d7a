internal import EventLoop
internal import HTTP
internal import JSON
internal import Notifications

/// A device's side of `carillon.v1`: its successive connections, and the state beyond them.
///
/// A delivery is durable before it is shown, and shown before it is acknowledged. So after any end of the device the cluster sends the rest
/// again, and nothing is shown twice.
final class DeviceConnection {
  private enum Phase {
    /// Not started, or stopped for good.
    case idle
    /// A connection is being made.
    case connecting
    /// The hello is sent.
    case greeting(WebSocketConnection)
    /// Notifications are delivered.
    case open(WebSocketConnection, since: UInt64, WelcomeFrame)
    /// This side is closing.
    case leaving(WebSocketConnection)
    /// It waits for the next attempt.
    case waiting
  }

  let loop: EventLoop
  let configuration: DeviceConfiguration
  /// What the cluster knows of the device, or is going to.
  private(set) var registration: DeviceRegistration
  /// The state that outlives connections, and with a state file the device.
  let memory: DeviceMemory
  /// Unanswered requests for links of this session.
  private var links: Set<Name> = []
  private var clock = ClusterClock()
  private var plan: ReconnectionPlan
  private var phase = Phase.idle
  private var acknowledgements = Acknowledgements()
  /// Counts the sessions, so that nothing is acknowledged in a later session.
  private var session = 0
  /// When the hello was sent, in the loop's milliseconds, until it is answered.
  private var unansweredHello: UInt64?
  private var isStopping = false
  private var turnTimer: Timer?
  private var isTurnScheduled = false
  private var connectTimer: Timer?
  private var deadlineTimer: Timer?
  private var dueTimer: Timer?
  private var json = JSONWriter(capacity: 1024)
  private var tell: ((DeviceEvent) -> Void)?
  /// Asks the owner to connect, with this as the handler. The owner calls `failed` if it cannot.
  private let connect: () -> Void
  private var whenEnded: [() -> Void] = []
  /// Calls of the program that wait for the cluster's welcome. They end with it, or with the reason why none will come.
  private let welcomes = TimedCalls<DeviceError?>()
  /// Sends a response from a watch to its phone; nil if this is no watch.
  var sendToPhone: ((ResponseFrame, DeliveredNotification) -> Void)?

  init(
    _ configuration: DeviceConfiguration, on loop: EventLoop, commit: (([StateChange]) -> Void)?, connect: @escaping () -> Void,
    tell: @escaping (DeviceEvent) -> Void
  ) {
    self.loop = loop
    self.configuration = configuration
    registration = DeviceRegistration(configuration)
    plan = ReconnectionPlan(addresses: configuration.urls.count)
    self.connect = connect
    self.tell = tell
    memory = DeviceMemory(configuration, commit: commit)
    turnTimer = Timer(on: loop) { [weak self] in self?.turnEnded() }
    connectTimer = Timer(on: loop) { [weak self] in self?.begin() }
    deadlineTimer = Timer(on: loop) { [weak self] in self?.deadlinePassed() }
    dueTimer = Timer(on: loop) { [weak self] in self?.takeTime() }
    memory.tell = { [weak self] in self?.tell?($0) }
  }

  /// The device's present identity.
  var hello: Hello { registration.hello }

  /// The cluster's clock.
  var now: Int64 { clock.now(loopMilliseconds: loop.milliseconds()) }

  /// The address of the next attempt or of the present connection.
  var url: String { configuration.urls[plan.address] }

  // MARK: The beginning and the end

  /// Takes the state of the database.
  func restore(_ state: StoredState) {
    registration.restore(state.registration)
    memory.restore(state)
    memory.save(registration.stored)
    // A turn would show what is due, before the commands of other processes are carried out.
    memory.writer.wake = { [weak self] in self?.scheduleTurn() }
  }

  /// Connects, and keeps connected.
  func begin() {
    guard !isStopping else { return }
    switch phase {
    case .idle, .waiting: break
    default: return
    }
    phase = .connecting
    connect()
  }

  /// Leaves in order with all acknowledgements sent; calls `body` when the connection has ended and the disk has everything.
  func stop(_ body: @escaping () -> Void) {
    whenEnded.append(body)
    isStopping = true
    welcomes.endAll(DeviceError(.notRunning, "the device is closed"))
    connectTimer?.stop()
    sendAcknowledgements()
    switch phase {
    case .greeting(let connection), .open(let connection, _, _): leave(connection, .normal, "")
    case .idle, .waiting, .connecting: phase = .idle
    case .leaving: break
    }
    endIfDone()
  }

  private func leave(_ connection: WebSocketConnection, _ code: WebSocketCloseCode, _ reason: String) {
    phase = .leaving(connection)
    connection.close(code, reason, pending: .sent)
  }

  private func endIfDone() {
    // A device that has signed out still has its local notifications.
    guard !whenEnded.isEmpty, case .idle = phase else { return }
    memory.writer.flush()
    guard memory.writer.isIdle else { return }
    for timer in [turnTimer, connectTimer, deadlineTimer, dueTimer] { timer?.close() }
    tell = nil
    memory.writer.close()
    let waiting = whenEnded
    whenEnded = []
    for body in waiting { body() }
  }

  /// The disk has finished a batch of the state writer.
  func diskFinished(_ failure: DeviceError?) {
    memory.writer.finished(failure)
    if let failure {
      // A delivery that cannot be saved must not be acknowledged.
      tell?(.failed(failure))
      stop {}
    }
    endIfDone()
  }

  // MARK: Connecting

  private func opened(_ connection: WebSocketConnection) {
    // A connection that was requested before the device stopped is not needed any more.
    guard case .connecting = phase else { return connection.abort() }
    let credential = configuration.credential?()
    do throws(DeviceError) {
      try registration.greet(with: credential)
    } catch {
      // The cluster would not take the device again. The program's next credential may be right.
      connection.abort()
      return retry(error.description)
    }
    phase = .greeting(connection)
    unansweredHello = loop.milliseconds()
    send(connection, hello)
    deadlineTimer?.start(after: configuration.connectMilliseconds)
  }

  /// The owner could not connect.
  func failed(_ error: WebSocketClientError) {
    guard case .connecting = phase else { return }
    var atLeast = 0
    switch error {
    case .url, .authorities:
      phase = .idle
      welcomes.endAll(DeviceError(.configuration, error.description))
      tell?(.unreachable(error.description, reconnectAfter: nil))
      return
    case .refused(_, _, _, let seconds?): atLeast = min(max(seconds, 0), 3600) * 1000
    default: break
    }
    retry(error.description, atLeast: atLeast)
  }

  /// Plans the next attempt, at least so many milliseconds later.
  private func retry(_ reason: String, atLeast: Int = 0) {
    phase = .waiting
    let wait = plan.failed(jitter: .random(in: 0...1), atLeast: atLeast)
    tell?(.unreachable(reason, reconnectAfter: wait))
    connectTimer?.start(after: wait)
  }

  private func deadlinePassed() {
    switch phase {
    case .greeting(let connection): leave(connection, .policyViolation, "no welcome came in time")
    case .open:
      sendResponses()
      deadlineTimer?.start(after: 5_000)
    default: break
    }
  }

  private func ended(code: UInt16, reason: String) {
    deadlineTimer?.stop()
    var stood: UInt64?
    switch phase {
    case .idle, .connecting, .waiting: return
    case .open(_, let since, _): stood = loop.milliseconds() - min(since, loop.milliseconds())
    case .greeting, .leaving: break
    }
    session += 1
    // The hello to a worker that drains or cannot serve may still be in progress in Redis.
    if unansweredHello != nil, CloseCode.reconnection(after: code) != .never { plan.helloAbandoned() }
    unansweredHello = nil
    acknowledgements = Acknowledgements()
    links = []
    memory.outbox.sessionEnded()
    registration.sessionEnded()
    let isGone = code == CloseCode.unregistered.rawValue
    let wait = plan.ended(code: code, sessionMilliseconds: stood, jitter: .random(in: 0...1))
    if isStopping || wait == nil {
      phase = .idle
      welcomes.endAll(DeviceError(.refused, "the cluster does not take the device (close code \(code)): \(reason)"))
      tell?(.closed(code: code, reason: reason, reconnectAfter: nil))
      if isGone, !isStopping {
        if !registration.isSigningOut { forgetPerson() }
        registration.unregistered()
        memory.save(registration.stored)
        tellUnregistered()
      }
    } else if let wait {
      phase = .waiting
      tell?(.closed(code: code, reason: reason, reconnectAfter: wait))
      connectTimer?.start(after: wait)
    }
    endIfDone()
  }

  // MARK: Frames in

  private func received(_ text: UnsafeRawBufferPointer) {
    if configuration.tracesFrames { tell?(.frame(.in, String(decoding: text, as: UTF8.self))) }
    do throws(DeviceFrameError) {
      received(try ServerFrame(text))
    } catch {
      tell?(.badFrame(error))
    }
  }

  private func received(_ frame: ServerFrame) {
    switch frame {
    case .welcome(let welcome): self.welcome(welcome)
    case .notify(let frame): take(frame)
    case .remove(let frame): remove(frame)
    case .accepted(let subject): settle(subject)
    case .refused(let frame): settle(frame.subject, frame)
    case .linked(let frame): if links.remove(Name(frame.request)) != nil { tell?(.linked(frame)) }
    case .gap(let frame): tell?(.gap(frame))
    case .goaway(let frame):
      if let milliseconds = frame.reconnectAfterMs { plan.goaway(milliseconds) }
      tell?(.goaway(frame))
    case .heartbeat, .unknown: break
    }
  }

  private func welcome(_ welcome: WelcomeFrame) {
    guard case .greeting(let connection) = phase else { return }
    clock.set(welcome.now, askedAt: unansweredHello ?? loop.milliseconds(), answeredAt: loop.milliseconds())
    unansweredHello = nil
    memory.store.rememberSeconds = welcome.rememberSeconds
    let answered = registration.welcomed(welcome.quiet, frameBytes: welcome.limits.frameBytes, now: loop.milliseconds())
    memory.save(registration.stored)
    phase = .open(connection, since: loop.milliseconds(), welcome)
    deadlineTimer?.start(after: 5_000)
    tell?(.connected(welcome, url: url))
    welcomes.endAll(nil)
    for request in answered { tell?(.accepted(.request(request.text))) }
    sendChanges()
    sendResponses()
  }

  private func take(_ frame: NotifyFrame) {
    // What comes for a person who signs out is neither shown nor acknowledged.
    guard case .open(let connection, _, _) = phase, !registration.isSigningOut else { return }
    if memory.store.needsTime(frame, from: clock.earliest(loopMilliseconds: loop.milliseconds()), to: now) {
      // It may be too late to show it, and too early to drop it. Another hello gives the time, and the cluster sends it again.
      sendAcknowledgements()
      return leave(connection, .tryAgainLater, "it took too long to learn the cluster's time")
    }
    let session = self.session
    memory.take(frame, now: now) { [weak self] in self?.tell($0, acknowledging: $1, in: session) }
    taken()
  }

  private func remove(_ frame: RemoveFrame) {
    let session = self.session
    memory.remove(frame, now: now) { [weak self] in self?.tell($0, acknowledging: $1, in: session) }
    taken()
  }

  private func taken() {
    if memory.writer.isFull, case .open(let connection, _, _) = phase {
      leave(connection, .tryAgainLater, "the device's disk is too slow")
    }
  }

  /// Reports a saved delivery. One from an earlier session is not acknowledged in this one.
  private func tell(_ event: DeviceEvent?, acknowledging acknowledgement: Acknowledgement, in session: Int) {
    if let event { tell?(event) }
    guard configuration.acknowledges, self.session == session else { return }
    acknowledgements.add(acknowledgement)
    scheduleTurn()
  }

  /// Takes the cluster's answer, or the phone's.
  private func settle(_ subject: FrameSubject, _ refusal: RefusedFrame? = nil) {
    let event = refusal.map { DeviceEvent.refused($0) } ?? .accepted(subject)
    switch subject {
    case .response(let id):
      guard memory.settle(id) else { return }
      tell?(event)
      sendResponses()
    case .request(let id):
      if links.remove(Name(id)) != nil { tell?(event) }
      guard let change = registration.settle(Name(id), isAccepted: refusal == nil, now: loop.milliseconds()) else { return }
      memory.save(registration.stored)
      tell?(event)
      if change == .unregister, refusal == nil {
        if case .open(let connection, _, _) = phase { leave(connection, .normal, "") }
        isStopping = true
        tellUnregistered()
      }
      sendChanges()
    }
  }

  /// The phone has stored a response of its watch.
  func takenByPhone(_ response: String) { settle(.response(response)) }

  // MARK: Frames out

  /// The end of a turn: its deliveries are saved together, and acknowledged together.
  func scheduleTurn() {
    guard !isTurnScheduled, tell != nil else { return }
    isTurnScheduled = true
    turnTimer?.start(after: 0)
  }

  private func turnEnded() {
    isTurnScheduled = false
    memory.writer.flush()
    sendAcknowledgements()
    startDueTimer()
    endIfDone()
  }

  // MARK: Time

  /// Shows what is due by the device's own clock.
  func takeTime() {
    memory.takeTime(memory.clock.now())
  }

  private func startDueTimer() {
    guard let wait = memory.store.wait(memory.clock.now()) else { return dueTimer?.stop() ?? () }
    // The clock may be set while the timer runs, and the timer stands while the machine sleeps. So the time is read again after a minute.
    dueTimer?.start(after: Int(clamping: min(wait, 60_000)))
  }

  private func sendAcknowledgements() {
    guard case .open(let connection, _, _) = phase, !acknowledgements.isEmpty else { return }
    send(connection, acknowledgements)
    acknowledgements = Acknowledgements()
  }

  /// Sends the responses that are due, to the cluster or from a watch to its phone.
  func sendResponses() {
    if let sendToPhone {
      for response in memory.outbox.next(now: loop.milliseconds()) {
        if let notification = memory.unsettled[Name(response.response)] { sendToPhone(response, notification) }
      }
      return
    }
    guard case .open(let connection, _, _) = phase else { return }
    for response in memory.outbox.next(now: loop.milliseconds()) { send(connection, response) }
  }

  private func sendChanges() {
    guard case .open(let connection, _, _) = phase else { return }
    for (request, change) in registration.next() { send(connection, change.frame(request)) }
  }

  /// Sends a frame.
  private func send(_ connection: WebSocketConnection, _ frame: any JSONWritable) {
    json.reset()
    frame.write(to: &json)
    json.withUnsafeBytes { bytes in
      _ = connection.send(.text(count: bytes.count) { $0.copyMemory(from: bytes) })
    }
    guard configuration.tracesFrames else { return }
    if var shown = frame as? Hello, shown.credential != nil {
      shown.credential = "••••"
      json.reset()
      shown.write(to: &json)
    }
    tell?(.frame(.out, json.text))
  }

  // MARK: The registration, and links

  /// Takes the person's quiet hours from the phone, on its watch.
  func takeFromPhone(_ hours: QuietHours?) {
    registration.takeFromPhone(hours)
    memory.save(registration.stored)
  }

  /// Makes a change of the registration, and tells the cluster; returns the id that its answer has. Throws if the cluster would refuse it.
  func change(_ change: RegistrationChanges.Change, request: Name) throws(DeviceError) -> Name {
    try memory.writer.checkSpace()
    let request = try registration.change(change, request: request, isStopping: isStopping)
    memory.save(registration.stored)
    if change == .unregister { forgetPerson() }
    if case .settings(let authorization) = change { memory.store.authorization = authorization }
    if case .locale(_, let timeZone) = change {
      if let timeZone { memory.store.zone = Name(timeZone) }
      // Times of day are due at other moments in another zone.
      takeTime()
    }
    memory.publish(hello)
    sendChanges()
    return request
  }

  /// Removes what belongs to the person who signs out, and tells what was in the list.
  private func forgetPerson() {
    let listed = memory.forgetPerson()
    guard !listed.isEmpty else { return }
    memory.writer.whenDurable { [weak self] failure in
      if failure == nil { self?.tell?(.removed(identifiers: listed.map(\.identifier), listed)) }
    }
  }

  /// Tells that the person has signed out, after what that has removed.
  private func tellUnregistered() { memory.writer.whenDurable { [weak self] _ in self?.tell?(.unregistered) } }

  /// Registers the device for remote notifications; `body` is called at the cluster's welcome, or with the error.
  func register(_ body: @escaping (DeviceError?) -> Void) throws(DeviceError) {
    guard !isStopping else { throw DeviceError(.notRunning, "the device has signed out: start another one") }
    try registration.register()
    memory.save(registration.stored)
    memory.writer.whenDurable { [weak self] failure in
      guard failure == nil, let self else { return body(failure ?? DeviceError(.notRunning, "the device is closed")) }
      guard !isStopping else { return body(DeviceError(.notRunning, "the device is closed")) }
      if case .open = phase { return body(nil) }
      let late = DeviceError(
        .notConnected,
        "the cluster has not welcomed the device within \(Self.welcomeMilliseconds / 1000) s: the device keeps trying, and you may call again"
      )
      welcomes.add(on: loop, milliseconds: Self.welcomeMilliseconds, late: late, body)
      begin()
    }
  }

  /// Asks for links. Requests that are lost with the connection are not repeated.
  func askForLinks(_ frames: [LinkFrame]) throws(DeviceError) {
    guard case .open(let connection, _, _) = phase else {
      throw DeviceError(.notConnected, "there is no connection to the cluster at the moment: ask again when there is")
    }
    guard links.count + frames.count <= Self.maximumLinks else {
      throw DeviceError(.tooManyWaiting, "too many requests for links wait for the cluster's answer already: try again when it has come")
    }
    for frame in frames {
      links.insert(Name(frame.request))
      send(connection, frame)
    }
  }

  private static let maximumLinks = 64
  /// How long a call waits for a welcome.
  private static let welcomeMilliseconds = 60_000
}

extension DeviceConnection: WebSocketHandler {
  func webSocketOpened(_ connection: WebSocketConnection) { opened(connection) }
  func webSocketReceived(text: UnsafeRawBufferPointer) { received(text) }
  func webSocketReceived(binary: UnsafeRawBufferPointer) {}
  func webSocketEnded(_ end: WebSocketEnd) { ended(code: end.code.rawValue, reason: end.reason) }
}
