import TestSupport
import Testing

@testable import Transform

/// Histories of several partitions against what was read of each.
struct TimeStepTests {
  private struct Partition {
    let end: Int64
    var next: Int64
    var time = Int64.min

    var isDone: Bool { next >= end }
  }

  @Test(arguments: 0..<200 as Range<UInt64>)
  func `no partition is read further than a step ahead of the last one, and one always goes on`(seed: UInt64) {
    var random = SeededRandom(seed: seed)
    let milliseconds = Int64.random(in: 0...50, using: &random)
    var step = TimeStep(milliseconds: milliseconds)
    var partitions: [Partition] = []
    var total: Int64 = 0
    for index in 0..<Int.random(in: 1...5, using: &random) {
      let first = Int64.random(in: 0...10, using: &random)
      partitions.append(Partition(end: first + Int64.random(in: 1...30, using: &random), next: first))
      total += partitions[index].end - first
      step.add(index, first..<partitions[index].end)
    }
    while partitions.contains(where: { !$0.isDone }) {
      let open = partitions.indices.filter { !partitions[$0].isDone }
      let slowest = open.map { partitions[$0].time }.min() ?? .max
      #expect(!step.isDone && step.earliest == slowest)
      #expect(step.last.map { partitions[$0].time } == slowest)
      let decided = step.decide()
      #expect(Set(decided.goOn).union(decided.wait) == Set(partitions.indices) && Set(decided.goOn).isDisjoint(with: decided.wait))
      let near = open.filter { partitions[$0].time == slowest || partitions[$0].time - max(slowest, 0) <= milliseconds }
      #expect(Set(decided.goOn) == Set(near))
      guard let index = decided.goOn.sorted().randomElement(using: &random) else { return }
      // Some offsets have no record, also the last ones.
      let offset = partitions[index].next + Int64.random(in: 0...2, using: &random)
      if Bool.random(using: &random) {
        let timestamp = max(0, partitions[index].time) + Int64.random(in: -5...40, using: &random)
        #expect(step.take(index, offset: offset, timestamp: timestamp) == (offset < partitions[index].end))
        partitions[index].time = max(partitions[index].time, timestamp)
        partitions[index].next = offset + 1
      } else {
        step.ended(index, at: offset)
        partitions[index].next = offset
      }
      #expect(step.end(of: index) == (partitions[index].isDone ? nil : partitions[index].end))
      #expect(step.read == total - partitions.map { max(0, $0.end - $0.next) }.reduce(0, +))
    }
    #expect(step.isDone && step.earliest == .max && step.last == nil && step.read == total)
    #expect(step.decide().goOn.isEmpty)
  }
}
