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

    mutating func passed(below offset: Int64) { next = min(max(next, offset), end) }
  }

  @Test(arguments: 0..<200 as Range<UInt64>)
  func `a partition that is more than a step ahead waits, and the slowest one goes on`(seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    let milliseconds = Int64.random(in: 0...50, using: &random)
    let began: Int64 = Bool.random(using: &random) ? 0 : 1_700_000_000_000
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
      let slowest = Self.slowest(of: open, partitions)
      #expect(!step.isDone && step.earliest == slowest)
      let last = try #require(step.last)
      #expect(open.contains(last) && partitions[last].time == slowest)
      let some = partitions.indices.filter { _ in Bool.random(using: &random) }
      #expect(step.earliest(of: some + [partitions.count]) == Self.slowest(of: some, partitions))

      let (wait, goOn) = step.decide()
      #expect((wait + goOn).sorted() == Array(partitions.indices) && Set(goOn).isSubset(of: open) && goOn.contains(last))
      for index in open {
        // A partition without any record is at the beginning of time.
        let isTooFar = partitions[index].time > max(slowest, 0) + milliseconds
        #expect(wait.contains(index) == isTooFar)
      }

      // Mostly one that goes on. Some offsets have no record, also the last ones; a log that begins again has some a second time.
      let index =
        Int.random(in: 0..<10, using: &random) == 0
        ? partitions.indices.randomElement(using: &random)! : goOn.randomElement(using: &random)!
      let offset = partitions[index].next + Int64.random(in: -2...2, using: &random)
      let timestamp = max(began, partitions[index].time) + Int64.random(in: -5...40, using: &random)
      let wasDone = partitions[index].isDone
      switch Int.random(in: 0..<5, using: &random) {
      case 0:
        step.reached(index, timestamp)
        partitions[index].time = max(partitions[index].time, timestamp)
      case 1:
        step.passed(index, below: offset)
        partitions[index].passed(below: offset)
      default:
        #expect(step.take(index, offset: offset, timestamp: timestamp) == (!wasDone && offset < partitions[index].end))
        if !wasDone {
          partitions[index].time = max(partitions[index].time, timestamp)
          partitions[index].passed(below: offset + 1)
        }
      }
      step.reached(partitions.count, timestamp)
      step.passed(partitions.count, below: offset)
      #expect(step.end(of: index) == (partitions[index].isDone ? nil : partitions[index].end))
      #expect(step.offsetsRead == total - partitions.map { $0.end - $0.next }.reduce(0, +))
    }
    #expect(step.isDone && step.earliest == .max && step.last == nil && step.offsetsRead == total)
    #expect(step.decide().goOn.isEmpty)
  }

  private static func slowest(of indexes: [Int], _ partitions: [Partition]) -> Int64 {
    indexes.filter { !partitions[$0].isDone }.map { partitions[$0].time }.min() ?? .max
  }
}
