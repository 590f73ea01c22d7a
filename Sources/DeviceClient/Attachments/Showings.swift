internal import Notifications

/// Events of notifications that wait for attachments, each for a bounded time. A value without a clock.
struct Showings<Event> {
  /// An event that waits.
  struct Showing {
    let event: Event
    let identifier: Name
    /// The apns-id, which tells it from a later notification of the identifier.
    let id: String
    let deadline: UInt64
    /// The files that it waits for.
    fileprivate(set) var missing: Set<MediaHash>
  }

  private(set) var waiting: [Showing] = []

  /// Adds an event, in place of one of its identifier that waits.
  mutating func add(_ event: Event, _ identifier: Name, id: String, missing: Set<MediaHash>, deadline: UInt64) {
    waiting.removeAll { $0.identifier == identifier }
    waiting.append(Showing(event: event, identifier: identifier, id: id, deadline: deadline, missing: missing))
  }

  /// A file is there, or will not come; returns the events that wait for nothing more, in their order.
  mutating func ended(_ hash: MediaHash) -> [Event] {
    for index in waiting.indices { waiting[index].missing.remove(hash) }
    return take { $0.missing.isEmpty }.map(\.event)
  }

  /// Takes the time; returns the events that wait no longer.
  mutating func expire(now: UInt64) -> [Event] { take { $0.deadline <= now }.map(\.event) }

  /// Drops the events of notifications that are not listed any more.
  mutating func keep(_ isListed: (Showing) -> Bool) { waiting.removeAll { !isListed($0) } }

  /// Returns all events, which wait no longer.
  mutating func takeAll() -> [Event] { take { _ in true }.map(\.event) }

  /// The time at which the next event waits no longer; nil if none waits.
  var deadline: UInt64? { waiting.map(\.deadline).min() }

  private mutating func take(_ condition: (Showing) -> Bool) -> [Showing] {
    let taken = waiting.filter(condition)
    waiting.removeAll(where: condition)
    return taken
  }
}
