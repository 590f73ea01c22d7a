public import Notifications

/// The delivered notifications of one thread, as a notification center stacks them.
public struct NotificationGroup: Sendable, Equatable {
  /// Their thread, compared byte by byte; nil for those that name none, which are one group.
  public let threadIdentifier: Name?
  /// The notifications, the newest first; at least one.
  public private(set) var notifications: [DeliveredNotification]

  /// Groups a list. The group with the newest notification comes first.
  ///
  /// - Parameter delivered: the list, the newest first.
  static func groups(of delivered: [DeliveredNotification]) -> [NotificationGroup] {
    var groups: [NotificationGroup] = []
    var places: [Name?: Int] = [:]
    for notification in delivered {
      // An empty thread is none, as in Apple's framework.
      let thread = notification.content.threadIdentifier.flatMap { $0.utf8.isEmpty ? nil : $0 }
      if let place = places[thread] {
        groups[place].notifications.append(notification)
      } else {
        places[thread] = groups.count
        groups.append(NotificationGroup(threadIdentifier: thread, notifications: [notification]))
      }
    }
    return groups
  }
}
