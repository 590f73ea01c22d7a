import EventLoop
import Kafka
import Redis
import TestSupport
import Testing

@testable import Store
@testable import Transform

/// Finding the record that ends its process: processes are tried one after the other, each of which knows what the one before has noted in
/// Redis. One of them is killed by somebody when the record has been found, over records that have nothing to do with it.
@Suite struct BisectionTests {
  /// What is wrong with the record.
  enum Fault: CaseIterable {
    /// Nobody survives it.
    case record
    /// Its service extensions do it.
    case extensions
  }

  @Test(.timeLimit(.minutes(2)), arguments: Fault.allCases) func theRecordThatEndsItsProcessIsFoundWhereverItLies(_ fault: Fault)
    async throws
  {
    try await KafkaFixture.with(embeddedOnly: true) { kafka in
      let topic = try await kafka.topic(partitions: 2)
      let counts = [230, 170]
      try await kafka.publish(
        counts.enumerated().flatMap { partition, count in (0..<count).map { TestRecord("\($0)", partition: Int32(partition)) } }, to: topic)
      try await withRedis { redis in
        let processes = Processes(fault)
        var failure: (any Error)?
        do {
          try await processes.start(topic, counts, kafka.configuration, redis.address)
          var random = SeededRandom(seed: 7)
          // The first and the last of a partition, both sides of a group's edge, and anything.
          let places: [(Int32, Int64)] = [(0, 0), (0, 229), (1, 0), (1, 169), (0, 63), (0, 64), (1, 8)]
          for (partition, offset) in places + (0..<8).map({ _ in (1, Int64.random(in: 0..<170, using: &random)) }) {
            let found = try await processes.live(withRecord: offset, of: partition, &random)
            #expect(found.others.isEmpty, "nothing else is treated as if it had done it")
            switch fault {
            case .record:
              #expect(found.ended <= CrashLoopDetector.tries)
              #expect(found.remedies == [.withoutExtensions, .deadLetter])
            case .extensions:
              #expect(found.ended < CrashLoopDetector.tries)
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
    private var parts: Parts?
    private var found = Found()
    private var isOneToBeKilled = false

    private enum End {
      case all
      case record
      case kill
    }

    init(_ fault: Fault) { self.fault = fault }

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
      (found, isOneToBeKilled) = (Found(), true)
      var starts: [Int32: Int64] = [0: 0, 1: 0]
      while true {
        let end = try await live((partition, offset), &starts, &random)
        if end == .all { break }
        if end == .record { found.ended += 1 }
      }
      CrashLoops(try #require(parts).shards).clear(starts.keys.map { .requests($0) })
      return found
    }

    /// One process: what it comes to. What it has finished may be known to the next, and may not.
    private func live(_ deadly: (partition: Int32, offset: Int64), _ starts: inout [Int32: Int64], _ random: inout SeededRandom)
      async throws -> End
    {
      let parts = try #require(parts)
      let detector = CrashLoopDetector(on: loop, CrashLoops(parts.shards), healthyMilliseconds: 60_000)
      defer { detector.close() }
      var bisection = Bisection()
      bisection.note(try await detector.began(starts.sorted { $0.key < $1.key }.map { (.requests($0.key), $0.value) }))
      for batch in parts.collector.batches {
        var first = 0
        while first < batch.count {
          let record = batch[first]
          guard record.offset >= starts[record.partition] ?? 0 else {
            first += 1
            continue
          }
          guard bisection.isNeeded else {
            if batch.indices.contains(where: { batch[$0].partition == deadly.partition && batch[$0].offset == deadly.offset }) {
              return .record
            }
            break
          }
          let partition = MarkedPartition.requests(record.partition)
          let group = first..<bisection.groupEnd(batch, from: first, partition)
          #expect(!group.isEmpty && group.allSatisfy { batch[$0].partition == record.partition })
          await mark(partition, CrashLoopDetector.Group(first: record.offset, count: Int64(group.count)), detector)
          _ = bisection.isOver(after: group.count)
          let remedy = bisection.takeDeadly(partition, record.offset)
          let isDeadly =
            record.partition == deadly.partition && (record.offset..<record.offset + Int64(group.count)).contains(deadly.offset)
          if let remedy {
            if isDeadly, group.count == 1 {
              if found.remedies.last != remedy { found.remedies.append(remedy) }
            } else {
              found.others.append(record.offset)
            }
          }
          if isDeadly, fault == .record ? remedy != .deadLetter : remedy == nil { return .record }
          // Somebody's kill over one record alone would be held against that record.
          if isOneToBeKilled, group.count > 1, found.remedies.last == (fault == .record ? .deadLetter : .withoutExtensions) {
            isOneToBeKilled = false
            return .kill
          }
          first = group.upperBound
          if Bool.random(using: &random) { starts[record.partition] = record.offset + Int64(group.count) }
        }
      }
      return .all
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
