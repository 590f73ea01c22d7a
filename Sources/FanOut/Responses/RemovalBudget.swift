import Notifications

/// How many removals the responses of each device publish in a minute. A value.
///
/// A removal is a request, which Kafka keeps for a month and every worker reads. No person opens as many notifications as the bound.
struct RemovalBudget {
  /// The most removals of one device in a minute.
  static let perMinute = 60

  private var minute: UInt64 = 0
  /// The removals of this minute, by the hashes of the devices' tokens.
  private var counts: [UInt64: Int] = [:]

  /// Counts a removal of a device. Returns whether it is within the bound.
  ///
  /// - Parameter milliseconds: of a clock that never goes back.
  mutating func takes(_ device: UInt64, at milliseconds: UInt64) -> Bool {
    if milliseconds / 60_000 != minute { (minute, counts) = (milliseconds / 60_000, [:]) }
    guard counts[device, default: 0] < Self.perMinute else { return false }
    counts[device, default: 0] += 1
    return true
  }
}

/// The notifications that a session has opened, so that each is removed once from the person's other devices: the newest of them. A value.
struct OpenedNotifications {
  private static let maximum = 256

  private var ids: [NotificationID] = []

  func contains(_ id: NotificationID) -> Bool { ids.contains(id) }

  mutating func insert(_ id: NotificationID) { ids = ids.suffix(Self.maximum - 1) + [id] }

  mutating func remove(_ id: NotificationID?) { ids.removeAll { $0 == id } }
}
