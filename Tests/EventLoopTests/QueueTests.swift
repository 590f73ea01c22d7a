import EventLoop
import TestSupport
import Testing

struct QueueTests {
  @Test(arguments: 1...20 as ClosedRange<UInt64>)
  func `it is an array whose front and end are removed, and it keeps little of what was removed`(seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    var (queue, model, number) = (Queue<Int>(), [Int](), 0)
    // Mostly as many are removed as added; a few times all are removed.
    for _ in 0..<20_000 {
      switch Int.random(in: 0..<100, using: &random) {
      case 0 where Bool.random(using: &random): while queue.popFirst() != nil { model.removeFirst() }
      case 0..<50:
        number += 1
        queue.append(number)
        model.append(number)
      case 50..<60: #expect(queue.popLast() == model.popLast())
      default: #expect(queue.popFirst() == (model.isEmpty ? nil : model.removeFirst()))
      }
      #expect(queue.count == model.count && queue.isEmpty == model.isEmpty && queue.first == model.first)
      let stored = try #require(Mirror(reflecting: queue).descendant("elements") as? [Int])
      #expect(stored.count <= 2 * queue.count + 65)
    }
  }
}
