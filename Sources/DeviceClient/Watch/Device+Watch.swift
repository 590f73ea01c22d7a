internal import EventLoop
internal import JSON
internal import Notifications

/// A phone and its watch: what is shown on which, and where a response goes.
extension Device {
  /// Takes a message of the other device (`session(_:didReceiveMessageData:)`). Bytes that are none are ignored.
  public func didReceiveMessageData(_ data: [UInt8]) {
    guard let connection, let message = WatchMessage(data) else { return }
    let now = loop.milliseconds()
    switch (configuration.watchConnectivity?.side, message) {
    case (nil, _): return
    case (.phone, .response(let response, let showing, let frame)): take(response, showing, frame, connection)
    case (.phone, .askHours): sendHours()
    case (.phone, .cleared(let showing)): remove(showing, connection)
    case (.phone, _):
      // A claim that comes too late gets no grant.
      perform(leases.recall { isPast($0) })
      perform(leases.received(message, now: now))
    case (.watch, .hours(let hours)): connection.takeFromPhone(hours)
    case (.watch, _):
      let store = connection.memory.store
      perform(claims.received(message, now: now, newID: Name(Self.uniqueID())) { store.hasShown($0) }, connection)
    }
  }

  func startWatch(_ connection: DeviceConnection) {
    guard let watch = configuration.watchConnectivity else { return }
    let timer = Timer(on: loop) { [weak self] in self?.assumeIsolated { $0.watchTimerFired() } }
    watchTimer = timer
    guard watch.side == .watch else {
      connection.memory.hoursChanged = { [weak self] in self?.assumeIsolated { $0.sendHours() } }
      return
    }
    connection.sendToPhone = { [weak self] response, notification in
      self?.assumeIsolated { $0.send(.response(response, NotificationShowing(notification), notification.frame)) }
    }
    timer.start(after: Self.repetition, repeating: Self.repetition)
    askForHours()
  }

  /// How often a watch looks for responses that its phone has not stored, in milliseconds.
  private static var repetition: Int { 1_000 }

  /// How often a watch asks for the person's quiet hours, in milliseconds: a message may be lost, or overtaken by an older one.
  private static var hoursRepetition: UInt64 { 60_000 }

  private func askForHours() {
    hoursAskedAt = loop.milliseconds()
    send(.askHours)
  }

  private func sendHours() { send(.hours(connection?.memory.registration.quietHours)) }

  /// Shows what the watch has not claimed.
  func closeWatch() {
    recallFromWatch()
    watchTimer?.close()
    watchTimer = nil
  }

  private func watchTimerFired() {
    switch configuration.watchConnectivity?.side {
    case .phone: perform(leases.takeTime(loop.milliseconds()))
    case .watch:
      connection?.sendResponses()
      if loop.milliseconds() >= hoursAskedAt + Self.hoursRepetition { askForHours() }
    case nil: break
    }
  }

  private func send(_ message: WatchMessage) { configuration.watchConnectivity?.sendMessageData(message.bytes) }

  // MARK: The phone

  /// Offers the notification of an event to the watch, if the screen is locked; false if the phone shows it now.
  func lend(_ event: DeviceEvent) -> Bool {
    // Without the timer the device is being closed: nobody would take the claim of the watch.
    guard configuration.watchConnectivity?.side == .phone, watchTimer != nil, let connection, connection.memory.store.state == .locked
    else { return false }
    switch event {
    case .shown(let notification), .updated(let notification):
      // What comes quietly does not interrupt the person on the watch either.
      guard !notification.presentation.isDisjoint(with: [.lockScreen, .sound]), !notification.presentation.contains(.quietly),
        connection.memory.store.notification(notification.identifier)?.isSame(notification) == true,
        let actions = leases.offer(
          NotificationShowing(notification), connection.forwardedFrame(of: notification), event, now: loop.milliseconds())
      else { return false }
      perform(actions)
      return true
    default: return false
    }
  }

  /// The phone is unlocked or closed.
  func recallFromWatch() { perform(leases.recall()) }

  /// Notifications have left the list of the phone, or of the watch.
  func watchListsChanged() {
    guard let side = configuration.watchConnectivity?.side, let connection else { return }
    lazy var listed = Set(connection.memory.store.delivered.map { NotificationShowing($0) })
    switch side {
    case .phone: if !leases.isEmpty { perform(leases.keep { listed.contains($0) }) }
    case .watch: for answer in claims.keep({ listed.contains($0) }) { send(answer) }
    }
  }

  private func perform(_ actions: [WatchLeases<DeviceEvent>.Action]) {
    for action in actions {
      switch action {
      case .send(let message): send(message)
      case .show(let event): passReturned(event)
      case .forwarded(.shown(let notification)), .forwarded(.updated(let notification)): tell(.forwarded(notification))
      case .forwarded: preconditionFailure("only what is shown is lent")
      }
    }
    guard let deadline = leases.deadline else { return watchTimer?.stop() ?? () }
    let now = loop.milliseconds()
    watchTimer?.start(after: Int(clamping: deadline - min(deadline, now)))
  }

  /// Takes what the person did on the watch. The watch repeats it until it is stored here.
  private func take(_ response: ResponseFrame, _ showing: NotificationShowing, _ frame: NotifyFrame, _ connection: DeviceConnection) {
    let listed = connection.memory.store.notification(showing.identifier).flatMap { NotificationShowing($0) == showing ? $0 : nil }
    // One that has left the list meanwhile is as the watch has it. Only the cluster's have a receipt.
    let notification =
      listed
      ?? DeliveredNotification(frame, takenAt: showing.takenAt, isLocal: frame.receipt.isEmpty, connection.memory.store.extensions)
    do throws(DeviceError) {
      try connection.takeFromWatch(response, to: notification) { [weak self] failure in
        guard failure == nil else { return }
        self?.assumeIsolated {
          $0.removed(listed, byWatch: showing)
          $0.send(.taken(response: response.response))
        }
      }
    } catch {
      // Too many responses wait. The watch has this one, and sends it again.
    }
  }

  /// Removes what has left the watch's list without a response.
  private func remove(_ showing: NotificationShowing, _ connection: DeviceConnection) {
    guard let listed = connection.memory.store.notification(showing.identifier), NotificationShowing(listed) == showing else { return }
    _ = connection.memory.clear([showing.identifier])
    connection.memory.writer.whenDurable { [weak self] failure in
      if failure == nil { self?.assumeIsolated { $0.removed(listed, byWatch: showing) } }
    }
  }

  /// Tells that the watch has taken a notification off the phone's list, and closes its panel.
  private func removed(_ listed: DeliveredNotification?, byWatch showing: NotificationShowing) {
    if let listed { tell(.removed(identifiers: [showing.identifier], [listed])) }
    if let open = openPanel?.context, NotificationShowing(open.panel.notification) == showing { closePanel(open.number) }
  }

  // MARK: The watch

  /// Tells the phone which of its notifications have left the watch's list without a response.
  func tellPhone(ofCleared notifications: [DeliveredNotification]) {
    guard configuration.watchConnectivity?.side == .watch else { return }
    for notification in notifications where !notification.isLocal { send(.cleared(NotificationShowing(notification))) }
  }

  private func perform(_ actions: [WatchClaims.Action], _ connection: DeviceConnection) {
    for action in actions {
      switch action {
      case .send(let message): send(message)
      case .show(let showing, let frame):
        connection.memory.takeForwarded(frame, showing, now: connection.now) { [weak self] event in
          self?.assumeIsolated { $0.stored(showing, event) }
        }
      case .remove(let showing):
        if connection.memory.store.notification(showing.identifier).map(NotificationShowing.init) == showing {
          _ = connection.memory.clear([showing.identifier])
          closePanel(of: [showing.identifier])
        }
      case .settle(let response): connection.takenByPhone(response)
      }
    }
  }

  /// A notification of the phone is durable on the watch, or may not be shown on it.
  private func stored(_ showing: NotificationShowing, _ event: DeviceEvent) {
    switch event {
    case .shown, .updated:
      claims.stored(showing)
      attachments?.take(event) ?? pass(event)
    default: send(claims.refused(showing))
    }
  }

  /// Answers the phone, if the notification of an event is one of its: the watch has shown it, or it has expired before.
  func answerPhone(_ event: DeviceEvent, isShown: Bool) {
    guard let notification = event.drawn else { return }
    if let answer = claims.ended(NotificationShowing(notification), isShown: isShown) { send(answer) }
  }
}

extension DeviceConnection {
  /// The frame of a notification as the phone shows it, for its watch: with its category, and with the attachments that have links.
  func forwardedFrame(of notification: DeliveredNotification) -> NotifyFrame {
    var frame = notification.changed ?? notification.frame
    frame.payload = Array(notification.content.payload.text.utf8)
    frame.category = category(of: notification)
    frame.attachments.removeAll { $0.link == nil }
    frame.trigger = nil
    return frame
  }
}
