import Notifications

/// A value: the pauses of due schedules whose firings the rules ignore, or which only a newer program can fire.
///
/// The clock of the broker may be behind, so the first firings are repeated at once. If the rules go on ignoring them, something is
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
  /// The pause of a schedule that a newer program has written, in milliseconds.
  static let newer: Int64 = 60_000
  /// The number of short pauses.
  static let patience = 10

  /// Notes what became of a firing. Returns the time until which its schedule does not fire, 0 for none, and whether the pauses begin to grow.
  ///
  /// The rules ignore a firing that is early by the broker's clock, or that another program wrote. It is produced again after a pause. What
  /// another program writes makes no pause, and ends none.
  ///
  /// - Parameters:
  ///   - isIgnored: whether the rules have ignored it.
  ///   - isOwn: whether the lane has written it.
  ///   - due: the time at which the schedule is due now.
  mutating func judged(
    isIgnored: Bool, isOwn: Bool, _ key: ScheduleKey, due: Int64, at place: DueTable.Place, now: Int64
  ) -> (until: Int64, isSlower: Bool) {
    if isIgnored, !isOwn { return (pauses[key]?.until ?? 0, false) }
    guard isIgnored, due <= now else {
      took(key)
      return (0, false)
    }
    var pause = pauses[key] ?? Pause(place: place)
    pause.count += 1
    let doublings = min(max(pause.count - Self.patience, 0), 16)
    pause.until = now + min(Self.shortest << doublings, Self.longest)
    pauses[key] = pause
    return (pause.until, pause.count == Self.patience + 1)
  }

  /// Pauses a schedule that a newer program has written. It must not take the place of schedules that can fire.
  mutating func leaveToNewer(_ key: ScheduleKey, at place: DueTable.Place, now: Int64) {
    pauses[key] = Pause(place: place, until: now + Self.newer)
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
