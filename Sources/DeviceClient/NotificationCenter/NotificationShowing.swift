internal import JSON
internal import Notifications

/// A showing of a notification. A newer one of its identifier is another one, and so is each occurrence of a repeating trigger.
struct NotificationShowing: Sendable, Hashable {
  var identifier: Name
  var id: Name
  var takenAt: Int64
}

extension NotificationShowing {
  /// The showing of a notification.
  init(_ notification: DeliveredNotification) {
    self.init(identifier: notification.identifier, id: Name(notification.id), takenAt: notification.takenAt)
  }

  /// The showing as JSON.
  var value: JSONValue { .array([.string(identifier.text), .string(id.text), .integer(takenAt)]) }

  /// Reads a showing; nil if the value is none.
  init?(_ value: JSONValue) {
    guard let parts = value.elements, parts.count == 3, let identifier = parts[0].nameValue, let id = parts[1].nameValue,
      let takenAt = parts[2].integerValue
    else { return nil }
    self.init(identifier: identifier, id: id, takenAt: takenAt)
  }
}
