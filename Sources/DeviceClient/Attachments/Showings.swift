internal import Notifications

/// Events of notifications that wait for attachments, each for a bounded time. A value without a clock.
struct Showings<Event> {
  /// An event that waits.
  struct Waiting {
    let event: Event
    let showing: NotificationShowing
    let deadline: UInt64
    /// The files that it waits for.
    fileprivate(set) var missing: Set<Media>
  }

  private(set) var waiting: [Waiting] = []
  /// The times of events whose notifications were updated, until the updates are told, by their identifiers.
  private var deadlines: [Name: UInt64] = [:]

  /// Adds an event, in place of one of its identifier that waits. It waits no longer than that one would have: frequent updates would
  /// otherwise never be shown.
  mutating func add(_ event: Event, _ showing: NotificationShowing, missing: Set<Media>, deadline: UInt64) {
    let former = waiting.first { $0.showing.identifier == showing.identifier }?.deadline ?? .max
    waiting.removeAll { $0.showing.identifier == showing.identifier }
    let deadline = min(deadline, former, deadlines.removeValue(forKey: showing.identifier) ?? .max)
    waiting.append(Waiting(event: event, showing: showing, deadline: deadline, missing: missing))
  }

  /// A file is there, or will not come; returns the showings that wait for nothing more, in their order. `take` follows for each.
  mutating func ended(_ media: Media) -> [NotificationShowing] {
    for index in waiting.indices { waiting[index].missing.remove(media) }
    return waiting.filter(\.missing.isEmpty).map(\.showing)
  }

  /// The events whose time is over. `take` follows for each.
  func over(now: UInt64) -> [Waiting] { waiting.filter { $0.deadline <= now } }

  /// Takes an event to tell it; nil if it has been dropped.
  mutating func take(_ showing: NotificationShowing) -> Event? {
    waiting.firstIndex { $0.showing == showing }.map { waiting.remove(at: $0).event }
  }

  /// Drops the events of notifications that are not listed any more.
  mutating func keep(_ listed: Set<NotificationShowing>) {
    let gone = waiting.filter { !listed.contains($0.showing) }
    waiting.removeAll { !listed.contains($0.showing) }
    guard !gone.isEmpty || !deadlines.isEmpty else { return }
    for entry in gone { deadlines[entry.showing.identifier] = min(entry.deadline, deadlines[entry.showing.identifier] ?? .max) }
    let identifiers = Set(listed.map(\.identifier))
    deadlines = deadlines.filter { identifiers.contains($0.key) }
  }

  /// The time at which the next event waits no longer; nil if none waits.
  var deadline: UInt64? { waiting.map(\.deadline).min() }
}
