import Notifications

/// The notifications that a session has opened, so that each is removed once from the person's other devices: the newest of them. A value.
struct OpenedNotifications {
  private static let maximum = 256

  private var ids: [NotificationID] = []

  func contains(_ id: NotificationID) -> Bool { ids.contains(id) }

  mutating func insert(_ id: NotificationID) { ids = ids.suffix(Self.maximum - 1) + [id] }

  mutating func remove(_ id: NotificationID?) { ids.removeAll { $0 == id } }
}
