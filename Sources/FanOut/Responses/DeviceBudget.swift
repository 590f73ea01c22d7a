import Notifications

/// How much of something each device may do in a minute. A value.
struct DeviceBudget {
  /// The most of one device in a minute.
  let perMinute: Int

  private var minute: UInt64 = 0
  /// What was done in this minute, by the hashes of the devices' tokens.
  private var counts: [UInt64: Int] = [:]

  init(perMinute: Int) { self.perMinute = perMinute }

  /// Counts what a device does. Returns whether it is within the bound.
  ///
  /// - Parameter milliseconds: of a clock that never goes back.
  mutating func takes(_ device: UInt64, at milliseconds: UInt64) -> Bool {
    if milliseconds / 60_000 != minute { (minute, counts) = (milliseconds / 60_000, [:]) }
    guard counts[device, default: 0] < perMinute else { return false }
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
