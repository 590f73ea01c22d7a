import Notifications

/// A value: the pauses of due schedules whose firings the judge ignores.
///
/// The clock of the broker may be behind, so the first firings are repeated at once. If the judge goes on ignoring them, something is
/// wrong with the schedule, and the pauses grow.
struct IgnoredFirings {
  private struct Pause {
    let place: DueTable.Place
    var count = 0
    /// The end of the pause, in milliseconds since 1970.
    var until: Int64 = 0
  }

  private var pauses: [ScheduleKey: Pause] = [:]

  /// The first pauses, in milliseconds.
  static let shortest: Int64 = 200
  /// The longest pause, in milliseconds.
  static let longest: Int64 = 30_000
  /// The number of short pauses.
  static let patience = 10

  /// Notes an ignored firing. Returns the end of the pause, and whether the pauses begin to grow.
  mutating func ignored(_ key: ScheduleKey, at place: DueTable.Place, now: Int64) -> (until: Int64, isSlower: Bool) {
    var pause = pauses[key] ?? Pause(place: place)
    pause.count += 1
    let doublings = min(max(pause.count - Self.patience, 0), 16)
    pause.until = now + min(Self.shortest << doublings, Self.longest)
    pauses[key] = pause
    return (pause.until, pause.count == Self.patience + 1)
  }

  /// Notes that a firing took effect, or that the schedule is not due any more.
  mutating func took(_ key: ScheduleKey) { pauses[key] = nil }

  /// Returns the end of a schedule's pause; nil if its firings are not ignored.
  func pause(of key: ScheduleKey) -> Int64? { pauses[key]?.until }

  /// Drops the pauses of schedules in a place that are no longer due.
  mutating func keep(_ due: Set<ScheduleKey>, at place: DueTable.Place) {
    guard !pauses.isEmpty else { return }
    pauses = pauses.filter { $0.value.place != place || due.contains($0.key) }
  }

  /// Drops the pauses in partitions that the lane no longer owns.
  mutating func keep(_ partitions: Set<Int32>) { pauses = pauses.filter { partitions.contains($0.value.place.partition) } }
}
