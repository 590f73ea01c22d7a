import EventLoop
import Kafka
import Redis
import TestSupport
import Testing

@testable import Store
@testable import Transform

/// Finding the record that ends its process: processes are tried one after the other, each of which knows what the ones before have noted in
/// Redis. Some of them are killed by somebody: when they begin, or over records that have nothing to do with it.
@Suite struct BisectionTests {
  /// What is wrong with the record.
  enum Fault: CaseIterable {
    /// Nobody survives it.
    case record
    /// Its service extensions do it.
    case extensions
  }

  /// The lanes of a process end together: what another one worked on is not to blame.
  @Test(.timeLimit(.minutes(4)), arguments: Fault.allCases, [[[0, 1]], [[0], [1]]] as [[[Int32]]])
  func theRecordThatEndsItsProcessIsFoundWhereverItLies(_ fault: Fault, lanes: [[Int32]]) async throws {
    try await KafkaFixture.with(embeddedOnly: true) { kafka in
      let topic = try await kafka.topic(partitions: 2)
      let counts = [230, 170]
      try await kafka.publish(
        counts.enumerated().flatMap { partition, count in (0..<count).map { TestRecord("\($0)", partition: Int32(partition)) } }, to: topic)
      try await withRedis { redis in
        let processes = Processes(fault, lanes)
        var failure: (any Error)?
        do {
          try await processes.start(topic, counts, kafka.configuration, redis.address)
          var random = SeededRandom(seed: 7)
          // The first and the last of a partition, both sides of a group's edge, and anything.
          let places: [(Int32, Int64)] = [(0, 0), (0, 229), (1, 0), (1, 169), (0, 63), (0, 64), (1, 8)]
          for (partition, offset) in places + (0..<8).map({ _ in (1, Int64.random(in: 0..<170, using: &random)) }) {
            let found = try await processes.live(withRecord: offset, of: partition, &random)
            #expect(found.others.isEmpty, "nothing else is treated as if it had done it")
            // Who is killed over another group takes the place of what the search had come to.
            let most = CrashLoopDetector.tries + 2 * found.killed
            switch fault {
            case .record:
              #expect(found.ended <= most)
              #expect(found.remedies == [.withoutExtensions, .deadLetter])
            case .extensions:
              #expect(found.ended < most)
              #expect(found.remedies == [.withoutExtensions])
            }
          }
        } catch { failure = error }
        await processes.close()
        await processes.loop.close()
        if let failure { throw failure }
      }
    }
  }

  private actor Processes {
    /// What became of a record that ends processes.
    struct Found: Sendable {
      /// Processes that have ended.
      var ended = 0
      /// Processes that somebody has killed.
      var killed = 0
      /// What was done about it, each once.
      var remedies: [CrashLoopDetector.Remedy] = []
      /// Others about which something was done.
      var others: [Int64] = []
    }

    private final class Collector: ConsumerHandler {
      var batches: [RecordBatch] = []
      func consumerReceived(_ batch: RecordBatch) { batches.append(batch) }
      func consumerAssigned(_ partitions: [AssignedPartition]) {}
      func consumerRevoked(_ partitions: [AssignedPartition], isLost: Bool, revocation: Revocation) { revocation.finish() }
      func consumerFailed(_ error: KafkaError) {}
    }

    /// What is made on the loop.
    private struct Parts {
      let shards: Shards
      let consumer: Consumer
      let collector: Collector
    }

    nonisolated let loop = EventLoop(name: "bisection")
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    private let fault: Fault
    private let lanes: [[Int32]]
    private var parts: Parts?
    private var found = Found()

    /// A lane of a process, with what it has come to.
    private final class Lane: CrashLoopDetectorOwner {
      let partitions: [Int32]
      let detector: CrashLoopDetector
      var bisection = Bisection()
      /// The next record: the batch and the place in it.
      var place = (batch: 0, record: 0)
      /// What it works on.
      var group: (partition: Int32, offsets: Range<Int64>)?

      init(_ partitions: [Int32], _ detector: CrashLoopDetector) { (self.partitions, self.detector) = (partitions, detector) }

      func isIdle(_ index: Int) -> Bool { false }
      var waker: @Sendable () -> Void { {} }
    }

    private enum End {
      case all
      case record
      case kill
    }

    init(_ fault: Fault, _ lanes: [[Int32]]) { (self.fault, self.lanes) = (fault, lanes) }

    func start(_ topic: String, _ counts: [Int], _ kafka: KafkaConfiguration, _ redis: RedisAddress) async throws {
      var store = StoreConfiguration(redis, buckets: 1)
      // A machine that stands still for seconds must not look like a Redis that does.
      store.callDeadlineMilliseconds = 60_000
      let shards = Shards(on: loop, store, clientName: "test")
      let collector = Collector()
      let consumer = try Consumer(on: loop, kafka, Consumer.Options(), handler: collector)
      parts = Parts(shards: shards, consumer: consumer, collector: collector)
      shards.start()
      try await shards.waitUntilUp(withinMilliseconds: 20_000)
      try await consumer.assign(counts.indices.map { (TopicPartition(topic, Int32($0)), .earliest) })
      let deadline = ContinuousClock.now + .seconds(30)
      while collector.batches.reduce(0, { $0 + $1.count }) < counts.reduce(0, +) {
        try #require(ContinuousClock.now < deadline, "the records come")
        await loop.sleep(milliseconds: 5)
      }
    }

    /// Lets one process after the other begin until one comes to the end of all records.
    func live(withRecord offset: Int64, of partition: Int32, _ random: inout SeededRandom) async throws -> Found {
      found = Found()
      var starts: [Int32: Int64] = [0: 0, 1: 0]
      while true {
        let end = try await live((partition, offset), &starts, &random)
        if end == .all { break }
        if end == .record { found.ended += 1 } else { found.killed += 1 }
      }
      CrashLoops(try #require(parts).shards).clear(starts.keys.map { .requests($0) })
      return found
    }

    /// One process: what it comes to. What it has finished may be known to the next, and may not.
    private func live(_ deadly: (partition: Int32, offset: Int64), _ starts: inout [Int32: Int64], _ random: inout SeededRandom)
      async throws -> End
    {
      let parts = try #require(parts)
      let turns = CrashLoopTurns()
      let lanes = lanes.map {
        Lane($0, CrashLoopDetector(on: loop, CrashLoops(parts.shards), turns, healthyMilliseconds: 60_000))
      }
      defer { for lane in lanes { lane.detector.close() } }
      for lane in lanes {
        lane.detector.owner = lane
        lane.bisection.note(try await lane.detector.began(lane.partitions.map { (.requests($0), starts[$0] ?? 0) }))
      }
      if isToBeKilled(&random) { return .kill }
      var left = lanes
      while let lane = left.randomElement(using: &random) {
        // Over one record alone it would be held against that record.
        if lanes.allSatisfy({ $0.group.map { $0.offsets.count > 1 } ?? true }), isToBeKilled(&random) { return .kill }
        if let group = lane.group {
          lane.group = nil
          if Bool.random(using: &random) { starts[group.partition] = max(starts[group.partition] ?? 0, group.offsets.upperBound) }
        }
        switch try await step(lane, deadly, starts) {
        case .record: return .record
        case .all: left.removeAll { $0 === lane }
        case .kill, nil: break
        }
      }
      return .all
    }

    private func isToBeKilled(_ random: inout SeededRandom) -> Bool {
      found.killed < 3 && Int.random(in: 0..<6, using: &random) == 0
    }

    /// The lane's group is finished: it begins the next, if it is its turn. Answers with what it or its process has come to.
    private func step(_ lane: Lane, _ deadly: (partition: Int32, offset: Int64), _ starts: [Int32: Int64]) async throws -> End? {
      let batches = try #require(parts).collector.batches
      func isWork(_ record: RecordView) -> Bool {
        lane.partitions.contains(record.partition) && record.offset >= starts[record.partition] ?? 0
      }
      while lane.place.batch < batches.count,
        lane.place.record == batches[lane.place.batch].count || !isWork(batches[lane.place.batch][lane.place.record])
      {
        lane.place =
          lane.place.record >= batches[lane.place.batch].count ? (lane.place.batch + 1, 0) : (lane.place.batch, lane.place.record + 1)
      }
      guard lane.place.batch < batches.count else {
        lane.detector.endTurn()
        return .all
      }
      let (batch, first) = (batches[lane.place.batch], lane.place.record)
      if lane.bisection.isOver {
        lane.bisection.end()
        lane.detector.endTurn()
      }
      guard lane.bisection.isNeeded else {
        return lane.partitions.contains(deadly.partition) && deadly.offset >= starts[deadly.partition] ?? 0 ? .record : .all
      }
      guard lane.detector.takeTurn() else { return nil }
      let partition = MarkedPartition.requests(batch[first].partition)
      let end = lane.bisection.groupEnd(batch, from: first, partition)
      #expect(end > first && (first..<end).allSatisfy { batch[$0].partition == batch[first].partition })
      let offset = batch[first].offset
      let group = (partition: batch[first].partition, offsets: offset..<offset + Int64(end - first))
      await mark(partition, CrashLoopDetector.Group(first: offset, count: Int64(end - first)), lane.detector)
      lane.bisection.began(end - first)
      lane.group = group
      let remedy = lane.bisection.takeDeadly(partition, offset)
      let isDeadly = group.partition == deadly.partition && group.offsets.contains(deadly.offset)
      if let remedy {
        if isDeadly, group.offsets.count == 1 {
          if found.remedies.last != remedy { found.remedies.append(remedy) }
        } else {
          found.others.append(offset)
        }
      }
      lane.place.record = end
      return isDeadly && (fault == .record ? remedy != .deadLetter : remedy == nil) ? .record : nil
    }

    private func mark(_ partition: MarkedPartition, _ group: CrashLoopDetector.Group, _ detector: CrashLoopDetector) async {
      await withCheckedContinuation { continuation in
        detector.mark(partition, group) {
          #expect($0)
          continuation.resume()
        }
      }
    }

    func close() async {
      parts?.shards.close()
      parts?.collector.batches = []
      await parts?.consumer.close()
    }
  }
}
