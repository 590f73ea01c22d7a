import EventLoop

/// Events that a task waits for together, until Kafka has them or has them not.
final class AwaitedEvents {
  private struct Group {
    var pending: Int
    var failed: Set<Int> = []
    let waiting: CheckedContinuation<Set<Int>, Never>
  }

  private var groups = SlotTable<Group>()

  /// Events of a group: what a purpose's number holds is the group's slot and the number of the event in it.
  private static let maximum = 1 << 12

  /// Emits so many events, and answers which of them Kafka does not have.
  ///
  /// - Parameters:
  ///   - count: at most 4,096.
  ///   - emit: emits the event of this number for this purpose; false when Kafka's queue is full.
  func emit(_ count: Int, _ emit: (_ number: Int, _ purpose: EventPurpose) -> Bool) async -> Set<Int> {
    precondition(count <= Self.maximum, "twelve bits have the number of an event")
    guard count > 0 else { return [] }
    return await withCheckedContinuation { continuation in
      let slot = groups.add(Group(pending: count, waiting: continuation))
      for number in 0..<count where !emit(number, .awaited(slot * Self.maximum + number)) {
        reported(slot * Self.maximum + number, failed: true)
      }
    }
  }

  /// The report of an event.
  func reported(_ event: Int, failed: Bool) {
    let (slot, number) = event.quotientAndRemainder(dividingBy: Self.maximum)
    groups.update(slot) { group in
      group.pending -= 1
      if failed { group.failed.insert(number) }
    }
    guard groups[slot]?.pending == 0, let group = groups.take(slot) else { return }
    group.waiting.resume(returning: group.failed)
  }
}
