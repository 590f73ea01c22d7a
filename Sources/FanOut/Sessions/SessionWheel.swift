/// Sessions by the second of a period in which each has its turn.
///
/// The second is drawn by lot, so that sessions that began together do not all have their turn at once.
struct SessionWheel {
  /// Generations; each session stays in its slot until it is over.
  private var slots: [[UInt64]]

  init(periodSeconds: Int) { slots = Array(repeating: [], count: max(1, periodSeconds)) }

  /// Adds a session: its first turn comes within a period.
  mutating func add(_ generation: UInt64) { slots[Int.random(in: slots.indices)].append(generation) }

  /// Returns the sessions whose turn comes in this second, and drops those that are over.
  mutating func turn(at second: UInt32, isOver: (UInt64) -> Bool) -> [UInt64] {
    let slot = Int(second) % slots.count
    slots[slot].removeAll(where: isOver)
    return slots[slot]
  }
}
