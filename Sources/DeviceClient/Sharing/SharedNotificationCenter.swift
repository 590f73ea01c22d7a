public import Extensions
public import FoundationEssentials
public import Notifications

/// The notification center of a device for another process, such as an extension of the program, on the device's state file.
///
///     let center = try await UserNotificationCenter.shared(in: "ada.state", application: "com.example.shop")
///     try await center.add(NotificationRequest(identifier: "tea", content: content, trigger: .timeInterval(240, repeats: false)))
///     await center.close()
///
/// The process with the ``Device`` shows notifications and is connected to the cluster. This one reads the state file, and stores in it what
/// the device is to do. The device does it within about a second, or at its next start. A call returns when its command is durable.
///
/// What this process has asked for is in its own answers at once; a request without a trigger is when the device has shown it.
public struct SharedNotificationCenter: Sendable {
  private let file: SharedStateFile

  fileprivate init(_ file: SharedStateFile) { self.file = file }

  /// Closes the state file; no call may follow.
  public func close() async { await file.close() }

  // MARK: Authorization and settings

  /// Returns whether notifications are allowed.
  ///
  /// Throws `needsDevice` if nobody has decided yet, since only the device's process can ask the person.
  @discardableResult
  public func requestAuthorization(options: Set<Authorization.Option>) async throws(DeviceError) -> Bool {
    switch try await notificationSettings().status {
    case .authorized, .provisional, .ephemeral: return true
    case .denied: return false
    case .notDetermined: throw Self.needsDevice("nobody has decided about notifications yet, and the person is asked there")
    }
  }

  /// What the person lets notifications do.
  public func notificationSettings() async throws(DeviceError) -> Authorization {
    try await file.read { _, hello, _ in hello.authorization }.get() ?? Authorization(status: .notDetermined)
  }

  /// Registers the application's categories, which replace all former ones. Throws the rule that one breaks, and changes nothing then.
  public func setNotificationCategories(_ categories: [NotificationCategory]) async throws(DeviceError) {
    // The hello of the device has a credential, too.
    try FrameRules.check(
      CategoriesFrame(categories: categories), atMost: FrameRules.frameBytes - 2 * FrameLimits.credentialBytes)
    try await file.store { _, _ in .categories(categories) }.get()
  }

  /// The registered categories.
  public func notificationCategories() async throws(DeviceError) -> [NotificationCategory] {
    try await file.read { _, hello, _ in hello.categories }.get() ?? []
  }

  /// Throws `needsDevice`, since the program's own settings are shown by the device's process.
  public func openSettings(for identifier: Name? = nil) async throws(DeviceError) {
    throw Self.needsDevice("the program's own settings are shown there")
  }

  /// Sets the number at the application's icon; 0 removes it. Throws if it is negative, or more than 31 bits.
  public func setBadgeCount(_ count: Int) async throws(DeviceError) {
    try NotificationRequest.checkBadge(count)
    try await file.store { _, _ in .badge(count) }.get()
  }

  /// The number at the application's icon.
  public func badgeCount() async throws(DeviceError) -> Int { try await file.read { store, _, _ in store.badge }.get() }

  // MARK: Requests

  /// Adds a local request. It replaces one of its identifier that waits, and without a trigger the device shows it at once.
  ///
  /// Throws the rule if the request can never be shown, and `needsDevice` if it has attachments, whose store is the device's.
  public func add(_ request: NotificationRequest) async throws(DeviceError) {
    guard request.attachments.isEmpty else { throw Self.needsDevice("attachments are moved into its store") }
    let frame = try request.frame(id: Device.uniqueID())
    let result = await file.store { (store, now) throws(DeviceError) in
      try store.check(frame, localTime: now)
      return .add(frame, at: now.by(frame.timedTrigger))
    }
    try result.get()
  }

  /// The requests that wait, in the order in which they were added.
  public func pendingNotificationRequests() async throws(DeviceError) -> [NotificationRequest] {
    try await file.read { store, _, _ in store.pending }.get().map(\.request)
  }

  /// When a request that waits is due next; nil if none waits, or if it waits for a place.
  ///
  /// A time in the past is that of a request that no running device has shown yet.
  public func nextTriggerDate(of identifier: Name) async throws(DeviceError) -> Date? {
    try await file.read { store, _, now in store.nextDue(of: identifier, now) }.get().map { Date(milliseconds: $0) }
  }

  /// Removes requests that wait.
  public func removePendingNotificationRequests(withIdentifiers identifiers: [Name]) async throws(DeviceError) {
    try await file.store { store, _ in .removePending(store.pending.filter { identifiers.contains($0.identifier) }.map { .init($0) }) }
      .get()
  }

  /// Removes all requests that wait.
  public func removeAllPendingNotificationRequests() async throws(DeviceError) {
    try await file.store { store, _ in .removePending(store.pending.map { .init($0) }) }.get()
  }

  // MARK: Delivered notifications

  /// The notifications in the list, the newest first.
  public func deliveredNotifications() async throws(DeviceError) -> [DeliveredNotification] {
    try await file.read { store, _, _ in store.delivered }.get()
  }

  /// The notifications in the list by their `threadIdentifier`. The group with the newest one comes first.
  public func deliveredNotificationGroups() async throws(DeviceError) -> [NotificationGroup] {
    NotificationGroup.groups(of: try await deliveredNotifications())
  }

  /// Removes notifications from the list, without a response. One that is updated before the device hears of it stays.
  public func removeDeliveredNotifications(withIdentifiers identifiers: [Name]) async throws(DeviceError) {
    try await file.store { store, _ in .removeDelivered(store.delivered.filter { identifiers.contains($0.identifier) }.map { .init($0) }) }
      .get()
  }

  /// Removes all notifications from the list.
  public func removeAllDeliveredNotifications() async throws(DeviceError) {
    try await file.store { store, _ in .removeDelivered(store.delivered.map { .init($0) }) }.get()
  }

  private static func needsDevice(_ reason: String) -> DeviceError {
    DeviceError(.needsDevice, "this needs the process of the device: \(reason)")
  }
}

extension UserNotificationCenter {
  /// Opens the notification center of a device that another process runs, by the device's state file.
  ///
  /// - Parameters:
  ///   - extensions: the device's, if its `DeviceConfiguration.extensions` change what is shown.
  ///   - timeZone: the zone of calendar triggers that name none; nil for the device's, which the state file has.
  public static func shared(
    in stateFile: String, application: Name, limits: StateLimits = StateLimits(), extensions: ExtensionChain? = nil, timeZone: Name? = nil
  ) async throws(DeviceError) -> SharedNotificationCenter {
    let file = SharedStateFile(stateFile, application, limits, extensions, zone: timeZone)
    guard case .failure(let error) = await file.open() else { return SharedNotificationCenter(file) }
    await file.close()
    throw error
  }
}
