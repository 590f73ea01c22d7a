public import Notifications

/// The device's registration for remote notifications, and the way to the program's own settings.
extension Device {
  /// The token that the cluster knows the device by; nil before the start.
  public var deviceToken: DeviceToken? { connection?.hello.device }

  /// Whether the program has registered the device for remote notifications.
  public var isRegisteredForRemoteNotifications: Bool { connection?.memory.registration.isRegistered ?? false }

  /// Registers the device for remote notifications; returns its token when the cluster has welcomed it.
  ///
  /// From then on the device connects at each start. Throws if the cluster refuses the device, if its token belongs to another environment,
  /// and if no welcome comes within 60 s; then it keeps trying.
  @discardableResult
  public func registerForRemoteNotifications() async throws(DeviceError) -> DeviceToken {
    let connection = try running()
    guard configuration.watchConnectivity?.side != .watch else {
      throw DeviceError(.configuration, "a watch gets notifications of the cluster from its phone: register the phone")
    }
    try await stored { (body) throws(DeviceError) in try connection.register(body) }
    return connection.hello.device
  }

  /// Tells the program that the person goes to its own settings for notifications, from a delivered one or from none.
  ///
  /// Throws if the program has not requested authorization with the option `providesAppNotificationSettings`.
  public func openSettings(for identifier: Name? = nil) throws(DeviceError) {
    let connection = try running()
    guard connection.hello.authorization?.options[.providesAppNotificationSettings] == true else {
      throw DeviceError(.noSettings, "the application has no settings of its own: it requests providesAppNotificationSettings for that")
    }
    var notification: DeliveredNotification?
    if let identifier { notification = try delivered(identifier).1 }
    delegate?.userNotificationCenter(userNotificationCenter, openSettingsFor: notification)
  }
}
