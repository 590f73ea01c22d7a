internal import EventLoop
internal import HTTP
internal import JSON
internal import Notifications

/// A device's side of `carillon.v1`: its successive connections, and the state beyond them. Loop-confined.
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
  /// The device's present identity; changes are sent with the next hello.
  private(set) var hello: Hello
  /// The state that outlives connections, and with a state file the device.
  let memory: DeviceMemory
  private var changes = RegistrationChanges()
  /// The largest frame that the cluster takes, in bytes.
  private var frameBytes = FrameRules.frameBytes
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
  private let welcomes = WelcomeWaiters()
  /// The person's quiet hours as the cluster has told or accepted them last.
  private var acceptedHours: QuietHours?
  /// When it has accepted hours last, in the loop's milliseconds.
  private var hoursAcceptedAt: UInt64?
  /// Sends a response from a watch to its phone; nil if this is no watch.
  var sendToPhone: ((ResponseFrame, StoredState.Listed) -> Void)?

  init(
    _ configuration: DeviceConfiguration, on loop: EventLoop, commit: (([StateChange]) -> Void)?, connect: @escaping () -> Void,
    tell: @escaping (DeviceEvent) -> Void
  ) {
    self.loop = loop
    self.configuration = configuration
    hello = configuration.hello
    plan = ReconnectionPlan(addresses: configuration.urls.count)
    self.connect = connect
    self.tell = tell
    memory = DeviceMemory(configuration, commit: commit)
    turnTimer = Timer(on: loop) { [weak self] in self?.turnEnded() }
    connectTimer = Timer(on: loop) { [weak self] in self?.begin() }
    deadlineTimer = Timer(on: loop) { [weak self] in self?.deadlinePassed() }
    dueTimer = Timer(on: loop) { [weak self] in self?.takeTime() }
  }

  /// The cluster's clock.
  var now: Int64 { clock.now(loopMilliseconds: loop.milliseconds()) }

  /// The address of the next attempt or of the present connection.
  var url: String { configuration.urls[plan.address] }

  // MARK: The beginning and the end

  /// Takes the state of the database.
  func restore(_ state: StoredState) {
    var state = state
    // Another person's hours do not hold, and that person's changes are not sent as this one's.
    if state.registration.person != hello.user { state.registration.forgetPerson() }
    memory.restore(state)
    let registration = memory.registration
    if let request = registration.quietRequest { _ = changes.add(.quietHours(registration.quietHours), request: request) }
    if let request = registration.signOutRequest { _ = changes.add(.unregister, request: request) }
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
    welcomes.finish(DeviceError(.notRunning, "the device is closed"))
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
    var hello = hello
    if let credential = configuration.credential?() { hello.credential = credential }
    do throws(DeviceError) {
      try FrameRules.check(atMost: .max) { hello.write(to: &$0) }
    } catch {
      // The cluster would not take the device again. The program's next credential may be right.
      connection.abort()
      return retry(error.description)
    }
    self.hello = hello
    phase = .greeting(connection)
    unansweredHello = loop.milliseconds()
    changes.helloSent()
    json.reset()
    hello.write(to: &json)
    send(connection, masked: hello.credential != nil)
    deadlineTimer?.start(after: configuration.connectMilliseconds)
  }

  /// The owner could not connect.
  func failed(_ error: WebSocketClientError) {
    guard case .connecting = phase else { return }
    var atLeast = 0
    switch error {
    case .url:
      phase = .idle
      welcomes.finish(DeviceError(.configuration, error.description))
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
    changes.sessionEnded()
    let isGone = code == CloseCode.unregistered.rawValue
    let wait = plan.ended(code: code, sessionMilliseconds: stood, jitter: .random(in: 0...1))
    if isStopping || wait == nil {
      phase = .idle
      welcomes.finish(DeviceError(.refused, "the cluster does not take the device (close code \(code)): \(reason)"))
      tell?(.closed(code: code, reason: reason, reconnectAfter: nil))
      if isGone, !isStopping { unregistered() }
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
    case .accepted(let frame): settle(frame.subject) { .accepted(frame.subject) }
    case .refused(let frame): settle(frame.subject) { .refused(frame) }
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
    take(welcome.quiet)
    frameBytes = max(welcome.limits.frameBytes, FrameRules.leastFrameBytes)
    phase = .open(connection, since: loop.milliseconds(), welcome)
    deadlineTimer?.start(after: 5_000)
    tell?(.connected(welcome, url: url))
    welcomes.finish(nil)
    for request in changes.welcomed() { tell?(.accepted(.request(request.text))) }
    sendChanges()
    sendResponses()
  }

  private func take(_ frame: NotifyFrame) {
    guard case .open(let connection, _, _) = phase else { return }
    if frame.isPast(now), !frame.isPast(clock.earliest(loopMilliseconds: loop.milliseconds())) {
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
    scheduleTurn()
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

  private func settle(_ subject: FrameSubject, _ event: () -> DeviceEvent) {
    switch subject {
    case .response(let id):
      guard memory.settle(id) else { return }
      scheduleTurn()
      tell?(event())
      sendResponses()
    case .request(let id):
      if links.remove(Name(id)) != nil { tell?(event()) }
      guard let change = changes.settle(Name(id)) else { return }
      if case .quietHours(let hours) = change { settle(hours, Name(id), event()) }
      if memory.registration.signOutRequest == Name(id) { memory.decide { $0.signOutRequest = nil } }
      tell?(event())
      if change == .unregister, case .accepted = event(), case .open(let connection, _, _) = phase {
        leave(connection, .normal, "")
        isStopping = true
        unregistered()
      }
      sendChanges()
    }
  }

  /// Takes the quiet hours of a welcome. What the person has set on this device since is newer.
  private func take(_ hours: QuietHours?) {
    // Another worker learns of an accepted change a moment later than this device.
    if let hoursAcceptedAt, loop.milliseconds() < hoursAcceptedAt + Self.hoursSpread { return }
    acceptedHours = hours
    guard memory.registration.quietRequest == nil else { return }
    memory.setQuietHours(hours, of: hello.user)
    scheduleTurn()
  }

  /// How long after a change of the quiet hours a welcome may not have it, in milliseconds. Usually that is a second.
  private static let hoursSpread: UInt64 = 10_000

  /// Takes the cluster's answer to quiet hours. If it refuses them, those from before hold again.
  private func settle(_ hours: QuietHours?, _ request: Name, _ answer: DeviceEvent) {
    if case .accepted = answer { (acceptedHours, hoursAcceptedAt) = (hours, loop.milliseconds()) }
    // The person may have set others since.
    guard memory.registration.quietRequest == request else { return }
    memory.setQuietHours(acceptedHours, of: hello.user)
    scheduleTurn()
  }

  private func unregistered() {
    memory.decide { ($0.isRegistered, $0.signOutRequest) = (false, nil) }
    // They belong to the person who has signed out.
    memory.setQuietHours(nil, of: nil)
    scheduleTurn()
    tell?(.unregistered)
  }

  // MARK: Frames out

  /// The end of a turn: its deliveries are saved together, and acknowledged together.
  private func scheduleTurn() {
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
    memory.takeTime(WallClock.milliseconds()) { [weak self] in self?.tell?($0) }
    scheduleTurn()
  }

  private func startDueTimer() {
    guard let due = memory.store.nextDue() else { return dueTimer?.stop() ?? () }
    // The clock may be set while the timer runs, so it is read again after a minute.
    dueTimer?.start(after: Int(clamping: min(max(due - WallClock.milliseconds(), 0), 60_000)))
  }

  private func sendAcknowledgements() {
    guard case .open(let connection, _, _) = phase, !acknowledgements.isEmpty else { return }
    json.reset()
    acknowledgements.write(to: &json)
    acknowledgements = Acknowledgements()
    send(connection)
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
    for response in memory.outbox.next(now: loop.milliseconds()) {
      json.reset()
      response.write(to: &json)
      send(connection)
    }
  }

  private func sendChanges() {
    guard case .open(let connection, _, _) = phase else { return }
    for (request, change) in changes.next() {
      json.reset()
      change.write(request, to: &json)
      send(connection)
    }
  }

  /// Sends the content of the writer.
  private func send(_ connection: WebSocketConnection, masked: Bool = false) {
    json.withUnsafeBytes { bytes in
      _ = connection.send(.text(count: bytes.count) { $0.copyMemory(from: bytes) })
    }
    guard configuration.tracesFrames else { return }
    var text = json.text
    if masked {
      var shown = hello
      shown.credential = "••••"
      json.reset()
      shown.write(to: &json)
      text = json.text
    }
    tell?(.frame(.out, text))
  }

  // MARK: Actions of the person and the application

  /// Stores a response, and calls `body` when it is durable, or with the error. It is sent after that, until the cluster has answered.
  func respond(
    _ response: ResponseFrame, to notification: DeliveredNotification, _ body: @escaping (DeviceError?) -> Void
  ) throws(DeviceError) {
    let options = category(of: notification)?.actions.first { $0.identifier == response.action }?.options ?? []
    let rule = ActionRule(response.action, options, in: memory.store.state)
    try memory.respond(response, to: notification, options, isLocked: rule.waitsForUnlocking) { [weak self] failure in
      body(failure)
      guard let self, failure == nil else { return }
      if rule.opensProgram, !rule.waitsForUnlocking { activate(response.identifier) }
      sendResponses()
    }
    scheduleTurn()
  }

  /// Brings the program to the foreground, because of an action of the person on a notification.
  private func activate(_ identifier: Name) {
    // The screen may have been locked while the response was written to the disk.
    guard memory.store.state == .background else { return }
    memory.store.state = .foreground
    tell?(.activated(identifier))
  }

  /// Sets what the program and the screen are doing. The unlocking sends and tells the responses that waited for it.
  func setState(_ state: ApplicationState) {
    memory.store.state = state
    guard state != .locked else { return }
    memory.release { [weak self] released in
      guard let self else { return }
      for response in released { if response.rule(in: state).opensProgram { activate(response.frame.identifier) } }
      sendResponses()
    }
    scheduleTurn()
  }

  /// Stores a response for a content extension, and calls `body` when it is durable, or with the error.
  func hold(
    _ response: ResponseFrame, to notification: DeliveredNotification, _ options: Set<NotificationAction.Option>,
    _ body: @escaping (DeviceError?) -> Void
  ) throws(DeviceError) {
    try memory.hold(response, to: notification, options, body)
    scheduleTurn()
  }

  /// The phone has stored a response of its watch.
  func takenByPhone(_ response: String) { settle(.response(response)) { .accepted(.response(response)) } }

  /// Takes a response of the watch, once; `body` is called when it is saved, or with the error.
  func takeFromWatch(
    _ response: ResponseFrame, to notification: DeliveredNotification, _ body: @escaping (DeviceError?) -> Void
  ) throws(DeviceError) {
    guard !memory.store.hasTaken(Name(response.response)) else { return whenDurable(body) }
    try memory.writer.checkSpace()
    try respond(response, to: notification) { _ in }
    memory.note(Name(response.response), now: now)
    whenDurable(body)
  }

  /// Shows a notification of the phone on its watch; `body` gets the event when it is saved.
  func showForwarded(_ frame: NotifyFrame, _ showing: NotificationShowing, _ body: @escaping (DeviceEvent) -> Void) {
    memory.takeForwarded(frame, showing, now: now, body)
    scheduleTurn()
  }

  /// Takes the person's quiet hours from the phone, on its watch.
  func takeFromPhone(_ hours: QuietHours?) {
    memory.setQuietHours(hours, of: hello.user)
    scheduleTurn()
  }

  /// Ends what a content extension has of a response.
  func end(_ response: String, _ end: HeldEnd) {
    memory.end(response, end) { [weak self] response in
      guard let self else { return }
      if response.rule(in: memory.store.state).opensProgram { activate(response.frame.identifier) }
      sendResponses()
    }
    scheduleTurn()
  }

  /// The category of a notification: what the device has registered, else what the application has published.
  func category(of notification: DeliveredNotification) -> NotificationCategory? {
    let identifier = notification.content.categoryIdentifier
    return hello.categories?.first { $0.identifier == identifier } ?? notification.frame.category
  }

  /// Removes notifications from the list, and returns those that were in it.
  func clear(_ identifiers: [Name]) -> [DeliveredNotification] {
    scheduleTurn()
    return memory.clear(identifiers)
  }

  /// Makes a change of the registration, and tells the cluster; returns the id that its answer has. Throws if the cluster would refuse it.
  func change(_ change: RegistrationChanges.Change, request: Name) throws(DeviceError) -> Name {
    var changed = hello
    change.apply(to: &changed)
    try check(change, request, changed)
    try memory.writer.checkSpace()
    // A watch has no cluster, and one that has signed out tells it nothing more.
    let request = isWatch || isStopping ? request : changes.add(change, request: request)
    hello = changed
    switch change {
    case .settings(let authorization):
      memory.decide { $0.authorization = authorization }
      memory.store.authorization = authorization
    case .locale(_, let timeZone):
      if let timeZone { memory.store.zone = Name(timeZone) }
      // Times of day are due at other moments in another zone.
      takeTime()
    case .categories(let categories):
      memory.decide { $0.categories = categories }
    case .quietHours(let hours): memory.setQuietHours(hours, of: hello.user, request: request)
    case .unregister: memory.decide { ($0.person, $0.signOutRequest) = (hello.user, request) }
    }
    memory.publish(hello)
    sendChanges()
    scheduleTurn()
    return request
  }

  /// Checks what a change sends: its frame, and each later hello.
  private func check(_ change: RegistrationChanges.Change, _ request: Name, _ changed: Hello) throws(DeviceError) {
    if change == .unregister, isWatch { throw DeviceError(.configuration, "a watch is not registered: unregister its phone") }
    if !change.isOfHello, isStopping { throw DeviceError(.notRunning, "the device has signed out, or is closed") }
    try FrameRules.check(atMost: frameBytes) { change.write(request, to: &$0) }
    // A hello that becomes smaller is no worse than before.
    let grows = changed.bytes > hello.bytes
    try FrameRules.check(atMost: grows ? frameBytes - roomForCredential : .max) { changed.write(to: &$0) }
  }

  /// How much larger the hello becomes with the largest credential that may follow the present one, in bytes.
  ///
  /// In frames of a small cluster it may take half.
  private var roomForCredential: Int {
    guard hello.credential != nil || configuration.credential != nil else { return 0 }
    let present = hello.credential?.utf8.count ?? 0
    return max(0, min(FrameLimits.credentialBytes + FrameRules.credentialOverhead, frameBytes / 2) - present)
  }

  private var isWatch: Bool { configuration.watchConnectivity?.side == .watch }

  /// Calls `body` when the changes so far are saved, or with the error.
  func whenDurable(_ body: @escaping (DeviceError?) -> Void) {
    memory.writer.whenDurable(body)
    scheduleTurn()
  }

  /// Registers the device for remote notifications; `body` is called at the cluster's welcome, or with the error.
  func register(_ body: @escaping (DeviceError?) -> Void) throws(DeviceError) {
    guard !isStopping else { throw DeviceError(.notRunning, "the device has signed out: start another one") }
    if let environment = memory.registration.environment, environment != hello.environment {
      throw DeviceError(
        .configuration,
        "the token belongs to the environment \(environment.rawValue): name another state file for \(hello.environment?.rawValue ?? "none")"
      )
    }
    let environment = hello.environment
    guard changes.stay() else { throw DeviceError(.notRunning, "the device is signing out: start another one") }
    memory.decide { $0.signOutRequest = nil }
    memory.decide { ($0.isRegistered, $0.environment) = (true, environment) }
    whenDurable { [weak self] failure in
      guard failure == nil, let self else { return body(failure ?? DeviceError(.notRunning, "the device is closed")) }
      guard !isStopping else { return body(DeviceError(.notRunning, "the device is closed")) }
      if case .open = phase { return body(nil) }
      welcomes.add(on: loop, body)
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
      json.reset()
      frame.write(to: &json)
      send(connection)
    }
  }

  private static let maximumLinks = 64

  /// A waiting notification's location was reached; false if none of this identifier waits.
  func fire(_ identifier: Name) throws(DeviceError) -> Bool {
    try memory.writer.checkSpace()
    scheduleTurn()
    return memory.fire(identifier, now: now, localTime: WallClock.milliseconds()) { [weak self] in self?.tell?($0) }
  }

  /// Stores that the program's service extension is given a notification; `body` is called when it is saved. False if that is not needed.
  func beginExtending(_ notification: DeliveredNotification, _ body: @escaping () -> Void) -> Bool {
    scheduleTurn()
    return memory.beginExtending(notification, body)
  }

  /// Shows a notification after the program's service extension, as that has changed it; `body` is called when it is saved, or not needed.
  func endExtending(_ notification: DeliveredNotification, changed: NotifyFrame?, _ body: @escaping () -> Void = {}) {
    let isNeeded = memory.endExtending(notification, changed: changed, now: now) { [weak self] in self?.tell?($0) }
    scheduleTurn()
    if isNeeded { memory.writer.whenDurable { _ in body() } } else { body() }
  }

  /// The program's delegate has taken a response.
  func told(_ response: String) {
    memory.told(response)
    scheduleTurn()
  }

  /// Adds a local request; `body` is called when it is saved, or with the error.
  func add(_ frame: NotifyFrame, _ body: @escaping (DeviceError?) -> Void) throws(DeviceError) {
    let now = WallClock.milliseconds()
    try memory.store.check(frame, localTime: now)
    try memory.writer.checkSpace()
    memory.add(frame, localTime: now, shown: { [weak self] in self?.tell?($0) }, body)
    scheduleTurn()
  }

  /// Removes requests that wait.
  func removePending(_ identifiers: [Name]) {
    memory.removePending(identifiers)
    scheduleTurn()
  }

  /// Does what another process has asked for; nil is nothing. The command leaves the database together with the effect.
  ///
  /// Throws if too much waits for the disk.
  func carryOut(_ command: StoredCommand?, _ place: Int64) throws(DeviceError) {
    var missed: DeviceEvent?
    try memory.writer.checkSpace()
    switch command {
    case .add(let frame, let at):
      // What is due at once is shown at this time.
      let time = frame.trigger == nil ? WallClock.milliseconds() : at
      do throws(DeviceError) {
        try memory.store.check(frame, localTime: time)
        memory.add(frame, localTime: time, shown: { [weak self] in self?.tell?($0) }, { _ in })
      } catch {
        // It was due some time in the zone in which the other process has checked it.
        missed = .dropped(delivery: nil, id: frame.id, identifiers: [frame.identifier], .expired)
      }
    case .removePending(let showings): memory.removePending(memory.store.pending(showings))
    case .removeDelivered(let showings): _ = memory.clear(memory.store.delivered(showings))
    case .badge(let number): memory.setBadge(number) { _ in }
    case .categories(let categories):
      let request = Device.uniqueID()
      do throws(DeviceError) {
        _ = try change(.categories(categories), request: Name(request))
      } catch {
        // They do not fit into a frame of this cluster, which the other process cannot know. A retry cannot help.
        guard !error.isRetriable else { throw error }
        missed = .refused(RefusedFrame(.request(request), .badFrame, field: "categories", rule: error.description))
      }
    case nil: break
    }
    memory.writer.append([.carriedOut(place)])
    if let missed { whenDurable { [weak self] failure in if failure == nil { self?.tell?(missed) } } }
    scheduleTurn()
  }

  /// Sets the number at the application's icon; `body` is called when it is saved, or with the error.
  func setBadge(_ number: Int, _ body: @escaping (DeviceError?) -> Void) throws(DeviceError) {
    try memory.writer.checkSpace()
    memory.setBadge(number, body)
    scheduleTurn()
  }
}

extension DeviceConnection: WebSocketHandler {
  func webSocketOpened(_ connection: WebSocketConnection) { opened(connection) }
  func webSocketReceived(text: UnsafeRawBufferPointer) { received(text) }
  func webSocketReceived(binary: UnsafeRawBufferPointer) {}
  func webSocketEnded(_ end: WebSocketEnd) { ended(code: end.code.rawValue, reason: end.reason) }
}
