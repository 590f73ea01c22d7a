internal import Notifications

/// Events of notifications that wait for attachments, each for a bounded time. A value without a clock.
struct Showings<Event> {
  /// An event that waits.
  struct Waiting {
    let event: Event
    let showing: NotificationShowing
    let deadline: UInt64
    /// The files that it waits for.
    fileprivate(set) var missing: Set<MediaHash>
  }

  private(set) var waiting: [Waiting] = []
  /// The times of events whose notifications were updated, until the updates are told, by their identifiers.
  private var deadlines: [Name: UInt64] = [:]

  /// Adds an event, in place of one of its identifier that waits. It waits no longer than that one would have: frequent updates would
  /// otherwise never be shown.
  mutating func add(_ event: Event, _ showing: NotificationShowing, missing: Set<MediaHash>, deadline: UInt64) {
    let former = waiting.first { $0.showing.identifier == showing.identifier }?.deadline ?? .max
    waiting.removeAll { $0.showing.identifier == showing.identifier }
    let deadline = min(deadline, former, deadlines.removeValue(forKey: showing.identifier) ?? .max)
    waiting.append(Waiting(event: event, showing: showing, deadline: deadline, missing: missing))
  }

  /// A file is there, or will not come; returns the events that wait for nothing more, in their order.
  mutating func ended(_ hash: MediaHash) -> [Event] {
    for index in waiting.indices { waiting[index].missing.remove(hash) }
    return take { $0.missing.isEmpty }.map(\.event)
  }

  /// Takes the time; returns the events whose time is over.
  mutating func expire(now: UInt64) -> [Waiting] { take { $0.deadline <= now } }

  /// The program gets an event of this identifier without a wait, so a former deadline does not count any more.
  mutating func told(_ identifier: Name) { deadlines[identifier] = nil }

  /// Drops the events of notifications that are not listed any more.
  mutating func keep(_ listed: Set<NotificationShowing>) {
    let gone = waiting.filter { !listed.contains($0.showing) }
    waiting.removeAll { !listed.contains($0.showing) }
    guard !gone.isEmpty || !deadlines.isEmpty else { return }
    for entry in gone { deadlines[entry.showing.identifier] = min(entry.deadline, deadlines[entry.showing.identifier] ?? .max) }
    let identifiers = Set(listed.map(\.identifier))
    deadlines = deadlines.filter { identifiers.contains($0.key) }
  }

  /// Returns everything, which waits no longer.
  mutating func takeAll() -> [Waiting] { take { _ in true } }

  /// The time at which the next event waits no longer; nil if none waits.
  var deadline: UInt64? { waiting.map(\.deadline).min() }

  private mutating func take(_ condition: (Waiting) -> Bool) -> [Waiting] {
    let taken = waiting.filter(condition)
    waiting.removeAll(where: condition)
    return taken
  }
}
