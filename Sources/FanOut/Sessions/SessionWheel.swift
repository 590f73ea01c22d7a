/// Gives each session a turn in one second of each period.
///
/// The second is random, so that sessions that began together have their turns at different times.
struct SessionWheel {
  /// Generations by their second. Each session stays in its slot until it ends.
  private var slots: [[UInt64]]

  init(periodSeconds: Int) { slots = Array(repeating: [], count: max(1, periodSeconds)) }

  /// Adds a session: its first turn comes within a period.
  mutating func add(_ generation: UInt64) { slots[Int.random(in: slots.indices)].append(generation) }

  /// Returns the sessions whose turn comes in this second, and drops the sessions that have ended.
  mutating func turn(at second: UInt32, isOver: (UInt64) -> Bool) -> [UInt64] {
    let slot = Int(second) % slots.count
    slots[slot].removeAll(where: isOver)
    return slots[slot]
  }
}
