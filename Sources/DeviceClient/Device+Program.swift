internal import Notifications
internal import Synchronization

/// The states of the program, and the calls of its delegate.
extension Device {
  /// What the program and the screen are doing.
  public var state: ApplicationState { connection?.memory.store.state ?? configuration.state }

  /// Sets what the program and the screen are doing.
  ///
  /// The unlocking sends and tells the responses that waited for it. The locking closes a panel whose preview is hidden behind it. The event
  /// `activated` tells that an action of the person has set `foreground`.
  public func setState(_ state: ApplicationState) {
    connection?.setState(state)
    if state != .locked { recallFromWatch() }
    if let open = openPanel?.context.panel, hidesBehindScreen(open.notification) { collapse() }
  }

  /// Whether the screen is locked, and the person hides the notification's texts behind it.
  func hidesBehindScreen(_ notification: DeliveredNotification) -> Bool { state == .locked && preview(of: notification).isHidden }

  /// The texts of a notification that may be drawn at this moment, by the person's setting for previews.
  public func preview(of notification: DeliveredNotification) -> NotificationPreview {
    let category = categories.first { $0.identifier == notification.content.categoryIdentifier } ?? notification.frame.category
    return NotificationPreview(of: notification.content, authorization?.previews, in: state, category: category)
  }

  // MARK: Calls of the delegate

  nonisolated var delegate: (any UserNotificationCenterDelegate)? { delegateInForce.withLock { $0 } }

  nonisolated func setDelegate(_ delegate: (any UserNotificationCenterDelegate)?) {
    delegateInForce.withLock { $0 = delegate }
    Task(executorPreference: loop) { await self.takeDelegate() }
  }

  /// Asks and tells the present delegate from now on.
  func takeDelegate() {
    guard let connection else { return }
    let (delegate, center) = (delegate, userNotificationCenter)
    connection.memory.willPresent = delegate.map { delegate in { delegate.userNotificationCenter(center, willPresent: $0) } }
    connection.memory.didReceive = delegate.map { delegate in
      { [weak self] response in self?.assumeIsolated { $0.pass(response, to: delegate) } }
    }
  }

  /// Passes a stored response to the program. It counts as taken when the program returns, or when the time of the call is over.
  func pass(_ response: StoredResponse, to delegate: any UserNotificationCenterDelegate) {
    let (frame, notification, center) = (response.frame, response.notification, userNotificationCenter)
    call(notification, response: frame.response) {
      await delegate.userNotificationCenter(
        center,
        didReceive: NotificationResponse(
          id: frame.response, notification: notification, actionIdentifier: frame.action, userText: frame.userText,
          isUnanswered: response.stage == .unanswered))
    }
  }

  /// Passes an event to the program, unless the watch may show its notification first.
  func pass(_ event: DeviceEvent) {
    guard !isPast(event) else { return dropExpired(event) }
    let isLent = lend(event)
    if !isLent { tell(event) }
    answerPhone(event, isShown: true)
    wakeProgram(for: event)
    if !isLent { noticed(event) }
  }

  /// Passes an event to the program whose notification the watch does not show.
  func passReturned(_ event: DeviceEvent) {
    guard !isPast(event) else { return dropExpired(event) }
    tell(event)
    noticed(event)
  }

  /// Whether the notification of an event has expired: it was stored in time, and has waited for the disk, its attachments or the watch.
  func isPast(_ event: DeviceEvent) -> Bool {
    guard let connection, let notification = event.drawn else { return false }
    return notification.frame.isPast(connection.now)
  }

  /// Drops the notification of an event, which is in the list and was not shown.
  private func dropExpired(_ event: DeviceEvent) {
    guard let notification = event.drawn else { return }
    // On a watch this comes before the removal, which would tell the phone that the person has cleared it.
    answerPhone(event, isShown: false)
    if let connection, connection.memory.store.notification(notification.identifier)?.isSame(notification) == true {
      _ = connection.memory.clear([notification.identifier])
      closePanel(of: [notification.identifier])
    }
    tell(.dropped(delivery: nil, id: notification.id, identifiers: [notification.identifier], .expired))
  }

  /// Wakes the program for a notification of the cluster that asks for it.
  private func wakeProgram(for event: DeviceEvent) {
    guard let delegate else { return }
    switch event {
    case .shown(let notification), .updated(let notification), .silent(let notification):
      guard notification.content.isContentAvailable, !notification.isLocal else { return }
      let center = userNotificationCenter
      call(notification) { await delegate.userNotificationCenter(center, didReceiveBackground: notification) }
    default: break
    }
  }

  /// Calls the delegate for a notification, and waits for it no longer than it may take.
  private func call(_ notification: DeliveredNotification, response: String? = nil, _ body: @escaping @Sendable () async -> Void) {
    guard calls.count < Self.maximumCalls else { return tell(.unhandled(notification)) }
    let number = calls.add(on: loop, milliseconds: configuration.delegateMilliseconds, late: true) { [weak self] isLate in
      self?.assumeIsolated { device in
        if isLate { device.tell(.unhandled(notification)) }
        if let response { device.connection?.memory.told(response) }
      }
    }
    Task(executorPreference: loop) {
      await body()
      await self.returned(number)
    }
  }

  private func returned(_ number: Int) { calls.end(number, false) }

  /// How many calls may run at once.
  private static var maximumCalls: Int { 1_000 }
}
