public import Notifications

/// The device's notification center: what was delivered, and what the person and the application do with it.
extension Device {
  /// The delivered notifications, the newest first.
  public var delivered: [DeliveredNotification] { connection?.memory.store.delivered ?? [] }
  /// The notifications that wait for a place.
  public var pending: [DeliveredNotification] { connection?.memory.store.pending ?? [] }
  /// The number at the application's icon.
  public var badge: Int { connection?.memory.store.badge ?? 0 }
  /// The categories that are registered.
  public var categories: [NotificationCategory] { connection?.hello.categories ?? [] }
  /// What the person lets notifications do.
  public var authorization: Authorization? { connection?.hello.authorization }
  /// How many responses the cluster has not answered yet.
  public var waitingResponses: Int { connection?.memory.outbox.waiting.count ?? 0 }

  // MARK: The person

  /// The person opens a notification: it leaves the list, and the default action is told.
  ///
  /// - Returns: the response's id, which the events `accepted` and `refused` name.
  @discardableResult
  public func open(_ identifier: Name) throws(DeviceError) -> String {
    try respond(to: identifier, action: NotificationAction.defaultIdentifier)
  }

  /// The person takes an action of the notification's category, with text if it is one that takes text: the notification leaves the list.
  ///
  /// Throws when there is no such notification, category or action, the text does not fit, or too many responses wait.
  /// - Returns: the response's id.
  @discardableResult
  public func respond(to identifier: Name, action: Name, userText: String? = nil) throws(DeviceError) -> String {
    let (connection, notification) = try delivered(identifier)
    try judge(action, userText, notification, connection)
    return try send(action, userText, notification, connection)
  }

  /// The person dismisses a notification explicitly: it leaves the list, and is told if its category asks for that.
  ///
  /// - Returns: the response's id; nil when the category does not ask for dismissals.
  @discardableResult
  public func dismiss(_ identifier: Name) throws(DeviceError) -> String? {
    let (connection, notification) = try delivered(identifier)
    let category = notification.content.categoryIdentifier
    let asks = connection.hello.categories?.first { $0.identifier == category }?.options.contains(.customDismissAction) == true
    if asks { return try send(NotificationAction.dismissIdentifier, nil, notification, connection) }
    _ = connection.clear([identifier])
    return nil
  }

  /// The person changes what notifications may do; it holds at once, and the cluster is told.
  ///
  /// - Returns: the request's id, which the events `accepted` and `refused` name.
  @discardableResult
  public func setAuthorization(_ authorization: Authorization) throws(DeviceError) -> String { try change(.settings(authorization)) }

  /// The device's locale or time zone is another; nil leaves it.
  @discardableResult
  public func setLocale(_ locale: String?, timeZone: String?) throws(DeviceError) -> String {
    guard locale != nil || timeZone != nil else { throw DeviceError(.configuration, "name a locale, a time zone, or both") }
    return try change(.locale(locale: locale, timeZone: timeZone))
  }

  // MARK: The application

  /// The application takes delivered notifications off the list: nothing is told, and they do not come back.
  ///
  /// - Returns: those that were in the list.
  @discardableResult
  public func remove(_ identifiers: [Name]) -> [DeliveredNotification] {
    guard let connection else { return [] }
    return connection.clear(identifiers)
  }

  /// Takes all delivered notifications off the list.
  @discardableResult
  public func removeAll() -> [DeliveredNotification] { remove(delivered.map(\.identifier)) }

  /// Registers the application's categories in the place of all former ones.
  @discardableResult
  public func setCategories(_ categories: [NotificationCategory]) throws(DeviceError) -> String { try change(.categories(categories)) }

  /// The person signs out, or the application is removed: when the cluster knows, the event `unregistered` comes, and the device stays away.
  @discardableResult
  public func unregister() throws(DeviceError) -> String { try change(.unregister) }

  /// The device is where a waiting notification's trigger says: it is shown; false when none of this identifier waits.
  @discardableResult
  public func fire(_ identifier: Name) -> Bool { connection?.fire(identifier) ?? false }

  /// Asks for new links to the attachments of a delivered notification: those that it came with are good for a while.
  ///
  /// Nothing of it is remembered: where the connection is lost before the answers come, they are asked for again.
  /// - Returns: of each attachment the request's id, which the events `linked` and `refused` name.
  @discardableResult
  public func renewLinks(of identifier: Name) throws(DeviceError) -> [String] {
    let (connection, notification) = try delivered(identifier)
    guard !notification.attachments.isEmpty else {
      throw DeviceError(.noAttachments, "the notification '\(identifier)' has no attachments")
    }
    let frames = notification.attachments.map { LinkFrame(hash: $0.attachment.media.hash, request: Self.uniqueID()) }
    try connection.askForLinks(frames)
    return frames.map(\.request)
  }

  // MARK: Parts

  private func running() throws(DeviceError) -> DeviceConnection {
    guard let connection else { throw DeviceError(.notRunning, "the device is not started, or is closed") }
    return connection
  }

  private func delivered(_ identifier: Name) throws(DeviceError) -> (DeviceConnection, DeliveredNotification) {
    let connection = try running()
    guard let notification = connection.memory.store.notification(identifier) else {
      throw DeviceError(.noSuchNotification, "no delivered notification has the identifier '\(identifier)'")
    }
    return (connection, notification)
  }

  /// The cluster's own rules, so that a response it would refuse is refused where the person still sees why.
  private func judge(
    _ action: Name, _ userText: String?, _ notification: DeliveredNotification, _ connection: DeviceConnection
  ) throws(DeviceError) {
    let category = notification.content.categoryIdentifier
    let verdict = connection.hello.registration(since: 0).judge(category: category, action: action, userText: userText)
    guard case .refused(let reason, _) = verdict else { return }
    let actions = connection.hello.categories?.first { $0.identifier == category }?.actions ?? []
    switch reason {
    case .unknownCategory:
      throw DeviceError(
        .noCategory,
        category.map { "its category '\($0)' is not registered by this device: register it, or open the notification" }
          ?? "the notification has no category, so it offers no actions: publish it with one that the device registers, or open it")
    case .unknownAction:
      let names = actions.map(\.identifier.text).joined(separator: ", ")
      throw DeviceError(
        .noSuchAction, "its category '\(category?.text ?? "")' has no action '\(action)'; it has: \(names.isEmpty ? "none" : names)")
    case .missingUserText: throw DeviceError(.wrongText, "the action '\(action)' takes text: say which")
    case .unexpectedUserText: throw DeviceError(.wrongText, "the action '\(action)' takes no text")
    case .userTextTooLong: throw DeviceError(.wrongText, "the text has more than \(Registration.userTextBytes) bytes")
    case .badFrame, .badReceipt, .notForThisDevice, .unknownMedia: break
    }
  }

  private func send(
    _ action: Name, _ userText: String?, _ notification: DeliveredNotification, _ connection: DeviceConnection
  ) throws(DeviceError) -> String {
    let response = ResponseFrame(
      response: Self.uniqueID(), receipt: notification.frame.receipt, identifier: notification.identifier, action: action,
      userText: userText, at: connection.now)
    try connection.respond(response)
    _ = connection.clear([notification.identifier])
    return response.response
  }

  private func change(_ change: RegistrationChanges.Change) throws(DeviceError) -> String {
    let request = Self.uniqueID()
    try running().change(change, request: request)
    return request
  }

  /// An id that no other has: 128 random bits.
  private static func uniqueID() -> String {
    NotificationID(high: .random(in: 0...UInt64.max), low: .random(in: 0...UInt64.max)).description
  }
}
