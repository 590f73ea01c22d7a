public import FoundationEssentials
public import Notifications

/// The notifications of one application on this device (`UNUserNotificationCenter`).
///
///     let center = device.userNotificationCenter
///     guard try await center.requestAuthorization(options: [.alert, .sound]) else { return }
///     let content = NotificationContent(title: "Tea", body: "It is ready", sound: "default")
///     try await center.add(NotificationRequest(identifier: "tea", content: content, trigger: .timeInterval(240, repeats: false)))
///
/// Requests and responses are stored when a call returns, if the device has a state file. What came due while the program was not running is
/// shown at its next start. Local requests never leave the device.
public struct UserNotificationCenter: Sendable {
  private let device: Device

  init(_ device: Device) { self.device = device }

  /// The program's part in notifications, instead of the configuration's; nil for none.
  ///
  /// Set it before the device starts, or soon after: responses that the program had not taken wait for it.
  public var delegate: (any UserNotificationCenterDelegate)? {
    get { device.delegate }
    nonmutating set { device.setDelegate(newValue) }
  }

  // MARK: Authorization and settings

  /// Asks the person to allow notifications, unless they have decided already; returns whether they are allowed.
  ///
  /// Nothing is shown before, and what is not among the options stays off. With the option `provisional` nobody is asked: notifications come
  /// quietly until the person decides, and a later call without it asks. The configuration's `authorizationPrompt` asks. The state file keeps
  /// the decision, so the person is asked once in the device's life, and the cluster is told.
  @discardableResult
  public func requestAuthorization(options: Set<Authorization.Option>) async throws(DeviceError) -> Bool {
    try await device.requestAuthorization(options)
  }

  /// What the person lets notifications do.
  public func notificationSettings() async -> Authorization { await device.authorization ?? Authorization(status: .notDetermined) }

  /// Whether content extensions draw notifications on this device: on all platforms but `tvOS`, which shows badges only.
  public var supportsContentExtensions: Bool { get async { await device.supportsContentExtensions } }

  /// Registers the application's categories, which replace all former ones. Throws the rule that one breaks, and changes nothing then.
  public func setNotificationCategories(_ categories: [NotificationCategory]) async throws(DeviceError) {
    try await device.setNotificationCategories(categories)
  }

  /// The registered categories.
  public func notificationCategories() async -> [NotificationCategory] { await device.categories }

  /// Tells the program that the person goes to its own settings for notifications, from a delivered one or from none.
  ///
  /// Throws if the program has not requested authorization with the option `providesAppNotificationSettings`.
  public func openSettings(for identifier: Name? = nil) async throws(DeviceError) { try await device.openSettings(for: identifier) }

  /// Sets the number at the application's icon; 0 removes it. Throws if it is negative, or more than 31 bits.
  public func setBadgeCount(_ count: Int) async throws(DeviceError) {
    try NotificationRequest.checkBadge(count)
    try await device.setBadge(count)
  }

  // MARK: Requests

  /// Adds a local request. It replaces one of its identifier that waits, and without a trigger is shown at once.
  ///
  /// At most 64 requests wait, and at most 20 for a place: the last added stay. It throws an error that names the rule if the request can
  /// never be shown.
  public func add(_ request: NotificationRequest) async throws(DeviceError) { try await device.add(request) }

  /// The requests that wait, in the order in which they were added.
  public func pendingNotificationRequests() async -> [NotificationRequest] { await device.pending.map(\.request) }

  /// When a request that waits is due next; nil if none waits, or if it waits for a place.
  public func nextTriggerDate(of identifier: Name) async -> Date? {
    await device.nextTriggerDate(of: identifier).map { Date(milliseconds: $0) }
  }

  /// Removes requests that wait.
  public func removePendingNotificationRequests(withIdentifiers identifiers: [Name]) async {
    await device.settled { $0.connection?.memory.removePending(identifiers) }
  }

  /// Removes all requests that wait.
  public func removeAllPendingNotificationRequests() async {
    await device.settled { $0.connection?.memory.removePending($0.pending.map(\.identifier)) }
  }

  // MARK: Delivered notifications

  /// The notifications in the list, the newest first.
  public func deliveredNotifications() async -> [DeliveredNotification] { await device.delivered }

  /// The notifications in the list by their `threadIdentifier`. The group with the newest one comes first.
  public func deliveredNotificationGroups() async -> [NotificationGroup] { NotificationGroup.groups(of: await device.delivered) }

  /// Removes notifications from the list, without a response. They do not come back.
  public func removeDeliveredNotifications(withIdentifiers identifiers: [Name]) async {
    await device.settled { $0.remove(identifiers) }
  }

  /// Removes all notifications from the list.
  public func removeAllDeliveredNotifications() async {
    await device.settled { $0.removeAll() }
  }
}
