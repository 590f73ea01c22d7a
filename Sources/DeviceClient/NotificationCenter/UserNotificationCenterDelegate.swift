public import Notifications

/// The program's part in local and remote notifications (`UNUserNotificationCenterDelegate`).
///
/// It is called on the device's loop. A trigger of the notification's request that is `push` marks one of the cluster.
public protocol UserNotificationCenterDelegate: AnyObject, Sendable {
  /// Chooses how a notification is shown while the program is in the foreground, before it is stored and shown; it must not block.
  ///
  /// Ways that the person or the cluster does not allow have no effect. With none of them nothing is shown, and the notification is dropped.
  func userNotificationCenter(_ center: UserNotificationCenter, willPresent notification: DeliveredNotification) -> PresentationOptions

  /// Takes what the person did with a notification, after it was stored.
  ///
  /// If the program ends before this returns, it is called again at the next start. After 30 s the response counts as taken. Do not wait in
  /// it for a person.
  func userNotificationCenter(_ center: UserNotificationCenter, didReceive response: NotificationResponse) async

  /// Fetches what a notification with `content-available` announces, within 30 s.
  ///
  /// It is called in each state of the program, also for one that shows something besides. Nothing repeats a call that the program's end
  /// interrupts.
  func userNotificationCenter(_ center: UserNotificationCenter, didReceiveBackground notification: DeliveredNotification) async

  /// Shows the program's own settings for notifications; it must not block.
  ///
  /// - Parameter notification: the one from which the person came; nil if it was none.
  func userNotificationCenter(_ center: UserNotificationCenter, openSettingsFor notification: DeliveredNotification?)
}

extension UserNotificationCenterDelegate {
  /// Shows nothing, as in Apple's framework.
  public func userNotificationCenter(
    _ center: UserNotificationCenter, willPresent notification: DeliveredNotification
  ) -> PresentationOptions { [] }

  /// Does nothing.
  public func userNotificationCenter(_ center: UserNotificationCenter, didReceive response: NotificationResponse) async {}

  /// Does nothing.
  public func userNotificationCenter(_ center: UserNotificationCenter, didReceiveBackground notification: DeliveredNotification) async {}

  /// Does nothing.
  public func userNotificationCenter(_ center: UserNotificationCenter, openSettingsFor notification: DeliveredNotification?) {}
}

/// What the person did with a notification (`UNNotificationResponse`).
public struct NotificationResponse: Sendable, Equatable {
  /// Its unique id.
  public let id: String
  /// The notification, with its whole request.
  public let notification: DeliveredNotification
  /// Apple's default or dismiss identifier, or the action's own.
  public let actionIdentifier: Name
  /// The text that was typed.
  public let userText: String?
  /// Whether a content extension had it and has not answered: it was too late, its panel was closed, or the program has ended.
  public let isUnanswered: Bool
}
