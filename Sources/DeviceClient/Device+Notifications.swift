internal import Calendars
public import Notifications

/// The device's notification center, with the actions of the person and the application.
extension Device {
  /// The delivered notifications, the newest first.
  public var delivered: [DeliveredNotification] { connection?.memory.store.delivered ?? [] }
  /// The notifications that wait for a time or a place.
  public var pending: [DeliveredNotification] { connection?.memory.store.pending ?? [] }
  /// The number at the application's icon.
  public var badge: Int { connection?.memory.store.badge ?? 0 }
  /// The registered categories.
  public var categories: [NotificationCategory] { connection?.hello.categories ?? [] }
  /// The person's permissions for notifications.
  public var authorization: Authorization? { connection?.hello.authorization }
  /// The locale that the device tells the cluster.
  public var locale: String? { connection?.hello.locale }
  /// The IANA name of the time zone that the device tells the cluster.
  public var timeZone: String? { connection?.hello.timeZone }
  /// The person's quiet hours, as the cluster has told them or the person has set them here; nil if there are none.
  public var quietHours: QuietHours? { connection?.memory.registration.quietHours }
  /// The number of responses that the cluster has not answered yet.
  public var waitingResponses: Int { connection?.memory.outbox.waiting.count ?? 0 }

  // MARK: Actions of the person

  /// Opens a notification for the person: it leaves the list, and the default action is reported.
  ///
  /// It returns when the response is stored, as the other actions do.
  /// - Returns: the response's id, which the events `accepted` and `refused` name.
  @discardableResult
  public func open(_ identifier: Name) async throws(DeviceError) -> String {
    try await respond(to: identifier, action: NotificationAction.defaultIdentifier)
  }

  /// Takes an action of the notification's category, with a text if the action needs one. The notification leaves the list.
  ///
  /// Throws if there is no such notification, category or action, the text does not fit, or too many responses wait.
  /// - Returns: the response's id.
  @discardableResult
  public func respond(to identifier: Name, action: Name, userText: String? = nil) async throws(DeviceError) -> String {
    if let response = try await respondInPanel(identifier, action, userText) { return response }
    let (connection, notification) = try delivered(identifier)
    let name = notification.content.categoryIdentifier.map { "its category '\($0)'" }
    try Self.judge(action, userText, connection.category(of: notification), of: name)
    return try await send(action, userText, notification, connection)
  }

  /// Dismisses a notification: it leaves the list, and is reported if its category asks for that.
  ///
  /// - Returns: the response's id; nil if the category does not ask for dismissals.
  @discardableResult
  public func dismiss(_ identifier: Name) async throws(DeviceError) -> String? {
    let (connection, notification) = try delivered(identifier)
    if connection.category(of: notification)?.options.contains(.customDismissAction) == true {
      if let response = try await respondInPanel(identifier, NotificationAction.dismissIdentifier, nil) { return response }
      return try await send(NotificationAction.dismissIdentifier, nil, notification, connection)
    }
    remove([identifier])
    return nil
  }

  /// Changes the permissions for notifications, at once and at the cluster.
  ///
  /// Of the changes of a kind that are not sent yet only the last one is sent. Their calls return one id, which has one answer. On a watch,
  /// and after the sign-out, there is no answer.
  /// - Returns: the request's id, which the events `accepted` and `refused` name.
  @discardableResult
  public func setAuthorization(_ authorization: Authorization) throws(DeviceError) -> String { try change(.settings(authorization)) }

  /// Changes the device's locale or time zone; nil leaves it. Throws the rule that a text breaks.
  @discardableResult
  public func setLocale(_ locale: String?, timeZone: String?) throws(DeviceError) -> String {
    guard locale != nil || timeZone != nil else { throw DeviceError(.configuration, "name a locale, a time zone, or both") }
    return try change(.locale(locale: locale, timeZone: timeZone))
  }

  /// Changes the person's quiet hours, for all of their devices, on this one at once; nil removes them.
  ///
  /// The state file keeps them until the cluster has answered. Throws if the hello has no user, since they belong to a person, if they break
  /// a rule, and on a watch, which has those of its phone.
  /// - Returns: the request's id, which the events `accepted` and `refused` name.
  @discardableResult
  public func setQuietHours(_ hours: QuietHours?) throws(DeviceError) -> String {
    guard configuration.watchConnectivity?.side != .watch else {
      throw DeviceError(.configuration, "a watch has the quiet hours of its phone: change them there")
    }
    guard try running().hello.user != nil else {
      throw DeviceError(.configuration, "quiet hours belong to a person: give the hello a user")
    }
    if let hours, !QuietCalendar.isZone(hours.timeZone) {
      let rule = "A zone has a name of the IANA database, such as Europe/Rome."
      throw DeviceError(.badRequest, DeviceFrameError(frame: "settings", field: "quiet.timeZone", rule: rule).description)
    }
    return try change(.quietHours(hours))
  }

  // MARK: Actions of the application

  /// Removes delivered notifications from the list without a response. They do not come back.
  ///
  /// - Returns: those that were in the list.
  @discardableResult
  public func remove(_ identifiers: [Name]) -> [DeliveredNotification] {
    guard let connection else { return [] }
    let removed = connection.memory.clear(identifiers)
    closePanel(of: identifiers)
    tellPhone(ofCleared: removed)
    return removed
  }

  /// Removes all delivered notifications from the list.
  @discardableResult
  public func removeAll() -> [DeliveredNotification] { remove(delivered.map(\.identifier)) }

  /// Registers the application's categories, which replace all former ones. Throws the rule that one breaks, and changes nothing then.
  @discardableResult
  public func setCategories(_ categories: [NotificationCategory]) throws(DeviceError) -> String { try change(.categories(categories)) }

  /// Signs the person out, or removes the application. The event `unregistered` confirms it, and the device stays disconnected.
  ///
  /// The person's notifications go at once: those in the list, those that wait, and the badge. `registerForRemoteNotifications` takes the
  /// sign-out back until it is sent.
  @discardableResult
  public func unregister() throws(DeviceError) -> String {
    // Its extension hands over the response that it has.
    collapse()
    return try change(.unregister)
  }

  /// Fires the trigger of a waiting notification, which is then shown; false if none of this identifier waits.
  ///
  /// Throws if too much waits for the disk.
  @discardableResult
  public func fire(_ identifier: Name) throws(DeviceError) -> Bool {
    guard let connection else { return false }
    return try connection.memory.fire(identifier, now: connection.now, localTime: connection.memory.clock.now().wall)
  }

  /// Asks for new links to the attachments of a delivered notification, since its first links expire.
  ///
  /// These requests are not stored: after a lost connection they must be sent again.
  /// - Returns: the request's id for each attachment, which the events `linked` and `refused` name.
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

  func running() throws(DeviceError) -> DeviceConnection {
    guard let connection else { throw DeviceError(.notRunning, "the device is not started, or is closed") }
    return connection
  }

  func delivered(_ identifier: Name) throws(DeviceError) -> (DeviceConnection, DeliveredNotification) {
    let connection = try running()
    guard let notification = connection.memory.store.notification(identifier) else {
      throw DeviceError(.noSuchNotification, "no delivered notification has the identifier '\(identifier)'")
    }
    return (connection, notification)
  }

  /// Throws why the cluster would refuse a response, by its own rules, so that the person sees it at once.
  ///
  /// - Parameter name: says whose actions these are; nil if the notification names no category.
  static func judge(_ action: Name, _ userText: String?, _ category: NotificationCategory?, of name: String?) throws(DeviceError) {
    guard case .refused(let reason, _) = DeliveredCategory(category).judge(action: action, userText: userText) else { return }
    switch reason {
    case .unknownCategory:
      throw DeviceError(
        .noCategory,
        name.map { "\($0) is not registered by this device: register it, or open the notification" }
          ?? "the notification has no category, so it offers no actions: publish it with one that the device registers, or open it")
    case .unknownAction:
      let names = (category?.actions ?? []).map(\.identifier.text).joined(separator: ", ")
      throw DeviceError(.noSuchAction, "\(name ?? "it") has no action '\(action)'; it has: \(names.isEmpty ? "none" : names)")
    case .missingUserText: throw DeviceError(.wrongText, "the action '\(action)' takes text: say which")
    case .unexpectedUserText: throw DeviceError(.wrongText, "the action '\(action)' takes no text")
    case .userTextTooLong: throw DeviceError(.wrongText, "the text has more than \(Registration.userTextBytes) bytes")
    case .badFrame, .badReceipt, .notForThisDevice, .unknownMedia: break
    }
  }

  private func send(
    _ action: Name, _ userText: String?, _ notification: DeliveredNotification, _ connection: DeviceConnection
  ) async throws(DeviceError) -> String {
    let response = ResponseFrame(
      response: Self.uniqueID(), receipt: notification.frame.receipt, identifier: notification.identifier, action: action,
      userText: userText, at: connection.now)
    try await stored { (body) throws(DeviceError) in try connection.respond(response, to: notification, body) }
    return response.response
  }

  private func change(_ change: RegistrationChanges.Change) throws(DeviceError) -> String {
    try running().change(change, request: Name(Self.uniqueID())).text
  }

  /// A unique id: 128 random bits.
  static func uniqueID() -> String {
    NotificationID(high: .random(in: 0...UInt64.max), low: .random(in: 0...UInt64.max)).description
  }
}
