import EventLoop
import Worker

/// Events that a task waits for together, until Kafka has them or has them not. Loop-confined.
final class AwaitedEvents {
  private struct Group {
    var pending: Int
    var failed: Set<Int> = []
    let waiting: CheckedContinuation<Set<Int>, Never>
  }

  private var groups = SlotTable<Group>()

  /// What a token holds below its tag: the number of the group, and the number of the event in it.
  private static let most = 1 << 12

  /// Says so many events, and answers which of them Kafka does not have.
  ///
  /// - Parameters:
  ///   - count: at most 4,096.
  ///   - say: says the event of this number with this token; false when Kafka's queue is full.
  func say(_ count: Int, _ say: (_ number: Int, _ token: UInt64) -> Bool) async -> Set<Int> {
    precondition(count <= Self.most, "a token has twelve bits for the number of an event")
    guard count > 0 else { return [] }
    return await withCheckedContinuation { continuation in
      let place = groups.add(Group(pending: count, waiting: continuation))
      for number in 0..<count where !say(number, EventProducer.Tag.awaited | UInt64(place * Self.most + number)) {
        reported(place * Self.most + number, failed: true)
      }
    }
  }

  /// The report of an event.
  func reported(_ token: Int, failed: Bool) {
    let (place, number) = token.quotientAndRemainder(dividingBy: Self.most)
    groups.update(place) { group in
      group.pending -= 1
      if failed { group.failed.insert(number) }
    }
    guard groups[place]?.pending == 0, let group = groups.take(place) else { return }
    group.waiting.resume(returning: group.failed)
  }
}
