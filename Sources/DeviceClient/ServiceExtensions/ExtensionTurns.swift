internal import Extensions

/// Which notifications wait for the program's service extension, and which are with it. A value without a clock.
struct ExtensionTurns {
  /// How many are with the extension at the same time.
  static let concurrency = 8

  /// A notification with its time.
  struct Turn {
    let notification: DeliveredNotification
    /// The time for its call.
    let budget: CallBudget
    /// When it is shown without the extension, unless that has begun.
    let deadline: UInt64
  }

  /// In the order in which they came.
  private var waiting: [Turn] = []
  private(set) var running: [DeliveredNotification] = []

  /// Adds a notification, which is given to the extension before the deadline or never.
  mutating func add(_ turn: Turn) { waiting.append(turn) }

  /// Returns the next notification that is given to the extension; nil if none waits, or too many are with it.
  mutating func begin() -> Turn? {
    guard running.count < Self.concurrency, !waiting.isEmpty else { return nil }
    let next = waiting.removeFirst()
    running.append(next.notification)
    return next
  }

  /// Ends the time with the extension; false if it has ended before.
  mutating func end(_ notification: DeliveredNotification) -> Bool {
    guard let index = running.firstIndex(where: { $0.isSame(notification) }) else { return false }
    running.remove(at: index)
    return true
  }

  /// Takes the time; returns the notifications that waited too long.
  mutating func expire(now: UInt64) -> [DeliveredNotification] {
    let over = waiting.filter { $0.deadline <= now }.map(\.notification)
    waiting.removeAll { $0.deadline <= now }
    return over
  }

  /// Drops the notifications that are not needed any more; returns those that are with the extension.
  mutating func keep(_ isNeeded: (DeliveredNotification) -> Bool) -> [DeliveredNotification] {
    waiting.removeAll { !isNeeded($0.notification) }
    let dropped = running.filter { !isNeeded($0) }
    running.removeAll { !isNeeded($0) }
    return dropped
  }

  /// The time at which the next notification has waited too long; nil if none waits.
  var deadline: UInt64? { waiting.map(\.deadline).min() }
}
