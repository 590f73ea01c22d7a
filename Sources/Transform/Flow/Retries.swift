/// The failed records that wait to be started again: those that have failed for the first time, and the others.
struct Retries {
  private var first: [Slot] = []
  private var again: [Slot] = []

  /// How many wait.
  var count: Int { first.count + again.count }
  /// How many of these have failed for the first time.
  var firstCount: Int { first.count }

  mutating func append(_ slot: Slot, isFirst: Bool) {
    if isFirst { first.append(slot) } else { again.append(slot) }
  }

  /// Takes all that have failed for the first time, and of the others so many, those that have waited longest.
  mutating func take(failedBefore count: Int) -> [Slot] {
    let taken = first + again.prefix(count)
    again.removeFirst(taken.count - first.count)
    first = []
    return taken
  }

  /// Takes records out.
  mutating func removeAll(where isOver: (Slot) -> Bool) -> [Slot] {
    let removed = first.filter(isOver) + again.filter(isOver)
    first.removeAll(where: isOver)
    again.removeAll(where: isOver)
    return removed
  }
}
