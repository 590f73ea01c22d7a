import EventLoop
import Redis
import TestSupport
import Testing

@testable import Store
@testable import Transform

/// Finding the records that end their process: processes are tried one after the other, each of which knows what the ones before have noted in
/// Redis. Some of them are killed by somebody: when they begin, or over records that have nothing to do with it.
@Suite struct BisectionTests {
  /// What is wrong with the records.
  enum Fault: CaseIterable {
    /// Nobody survives them.
    case record
    /// Their service extensions do it.
    case extensions
  }

  /// What two partitions hold, and which lanes work on them.
  struct Case: Sendable, CustomTestStringConvertible {
    let testDescription: String
    var lanes: [[Int32]] = [[0, 1]]
    var counts = [230, 170]
    /// The distance from one offset to the next at most: where a topic is compacted, or written in transactions, offsets are missing.
    var gap: Int64 = 1
    /// Records that end their process.
    var deadly = 1
    /// Whether the lanes know that they have read all there is.
    var isRead = false
    /// Whether the next process may know what one has finished.
    var isCommitted = true

    static let all = [
      Case(testDescription: "one lane"), Case(testDescription: "two lanes", lanes: [[0], [1]]),
      Case(testDescription: "offsets that are missing", gap: 30), Case(testDescription: "all of it was read", isRead: true),
      Case(testDescription: "two of them", deadly: 2),
      Case(testDescription: "two of them, and nothing is committed", deadly: 2, isCommitted: false),
      Case(testDescription: "three of them in two lanes", lanes: [[0], [1]], gap: 3, deadly: 3),
      Case(testDescription: "behind more than is bisected", counts: [1_300, 40]),
    ]
  }

  /// The lanes of a process end together: what another one worked on is not to blame.
  @Test(.timeLimit(.minutes(10)), arguments: Fault.allCases, Case.all)
  func theRecordThatEndsItsProcessIsFoundWhereverItLies(_ fault: Fault, _ what: Case) async throws {
    try await withRedis { redis in
      var random = SeededRandom(seed: 7)
      let offsets = what.counts.map { count in
        var offset: Int64 = 0
        return (0..<count).map { _ in
          defer { offset += Int64.random(in: 1...what.gap, using: &random) }
          return offset
        }
      }
      let processes = Processes(fault, what, offsets)
      var failure: (any Error)?
      do {
        try await processes.start(redis.address)
        // The first and the last of a partition, both sides of a group's edge, and anything.
        let places = [(0, 0), (0, 229), (1, 0), (1, 39), (0, 63), (0, 64), (1, 8)] + (0..<8).map { _ in (1, -1) }
        for (partition, place) in places {
          var deadly = [Record(partition: Int32(partition), offset: offsets[partition][place < 0 ? 21 : place])]
          while deadly.count < what.deadly {
            let partition = Int.random(in: 0..<2, using: &random)
            let record = Record(partition: Int32(partition), offset: try #require(offsets[partition].randomElement(using: &random)))
            if !deadly.contains(record) { deadly.append(record) }
          }
          if place < 0, let offset = offsets[1].randomElement(using: &random) { deadly[0] = Record(partition: 1, offset: offset) }
          let found = try await processes.live(with: Set(deadly), &random)
          #expect(found.others.isEmpty, "nothing else is treated as if it had done it")
          // Who is killed over another group takes the place of what the search had come to.
          let most = CrashLoopDetector.tries * Set(deadly).count + 2 * found.killed
          for record in deadly {
            let remedies = found.remedies[record] ?? []
            switch fault {
            case .record: #expect(remedies == [.withoutExtensions, .deadLetter], "\(deadly)")
            case .extensions: #expect(remedies == [.withoutExtensions], "\(deadly)")
            }
          }
          #expect(found.ended <= most)
        }
      } catch { failure = error }
      await processes.close()
      await processes.loop.close()
      if let failure { throw failure }
    }
  }

  private struct Record: Hashable, Sendable {
    let partition: Int32
    let offset: Int64
  }

  private actor Processes: LoopActor {
    /// What became of the records that end processes.
    struct Found: Sendable {
      /// Processes that have ended.
      var ended = 0
      /// Processes that somebody has killed.
      var killed = 0
      /// What was done about each, in order, each once.
      var remedies: [Record: [CrashLoopDetector.Remedy]] = [:]
      /// Others about which something was done.
      var others: [Record] = []
    }

    /// A lane of a process, with what it has come to.
    private final class Lane: CrashLoopDetectorOwner {
      let partitions: [Int32]
      let detector: CrashLoopDetector
      var bisection = RecordGroups<Void>()
      /// What is still to be begun, the next first.
      var records: ArraySlice<Record>
      /// What it works on.
      var group: (partition: Int32, offsets: Range<Int64>)?

      init(_ partitions: [Int32], _ detector: CrashLoopDetector, _ records: [Record]) {
        (self.partitions, self.detector, self.records) = (partitions, detector, records[...])
      }

      func isIdle(_ index: Int) -> Bool { false }
      func redisRefusedWrites(_ error: StoreError) {}
      func foundHarmless(_ partitions: [MarkedPartition]) {}
      var waker: @Sendable () -> Void { {} }
    }

    private enum End {
      case all
      case record
      case kill
    }

    nonisolated let loop = EventLoop(name: "bisection")
    private let fault: Fault
    private let what: Case
    /// As a consumer gives them: some of one partition, then some of the other.
    private let records: [Record]
    private var shards: Shards?
    private var found = Found()

    init(_ fault: Fault, _ what: Case, _ offsets: [[Int64]]) {
      (self.fault, self.what) = (fault, what)
      let size = offsets[0].count > 1_000 ? 1_100 : 50
      var (records, rest) = ([Record](), offsets.map { $0[...] })
      while rest.contains(where: { !$0.isEmpty }) {
        for partition in rest.indices {
          records += rest[partition].prefix(size).map { Record(partition: Int32(partition), offset: $0) }
          rest[partition] = rest[partition].dropFirst(size)
        }
      }
      self.records = records
    }

    func start(_ redis: RedisAddress) async throws {
      var store = StoreConfiguration(redis, buckets: 1)
      // A machine that stands still for seconds must not look like a Redis that does.
      store.callDeadlineMilliseconds = 60_000
      let shards = Shards(on: loop, store, clientName: "test")
      self.shards = shards
      shards.start()
      try await shards.waitUntilUp(withinMilliseconds: 60_000)
    }

    /// Lets one process after the other begin until one comes to the end of all records.
    func live(with deadly: Set<Record>, _ random: inout SeededRandom) async throws -> Found {
      found = Found()
      var starts: [Int32: Int64] = [0: 0, 1: 0]
      while found.ended < 100 {
        let end = try await live(deadly, &starts, &random)
        if end == .all { break }
        if end == .record { found.ended += 1 } else { found.killed += 1 }
      }
      CrashLoops(try #require(shards)).clear(starts.keys.map { .requests($0) })
      return found
    }

    /// One process: what it comes to. What it has finished may be known to the next, and may not.
    private func live(_ deadly: Set<Record>, _ starts: inout [Int32: Int64], _ random: inout SeededRandom) async throws -> End {
      let shards = try #require(shards)
      let permit = CrashLoopPermit()
      let lanes = what.lanes.map { partitions in
        Lane(
          partitions, CrashLoopDetector(on: loop, CrashLoops(shards), permit, healthyMilliseconds: 60_000),
          records.filter { partitions.contains($0.partition) && $0.offset >= starts[$0.partition] ?? 0 })
      }
      defer { for lane in lanes { lane.detector.close() } }
      for lane in lanes {
        lane.detector.owner = lane
        let suspicions = try await lane.detector.began(lane.partitions.map { (.requests($0), starts[$0] ?? 0) })
        for (partition, suspicion) in suspicions { lane.bisection.suspect(partition, suspicion) }
        lane.detector.bisects(lane.bisection.isNeeded)
        // All that is there is read at once.
        if what.isRead { for partition in lane.partitions { lane.bisection.reachedEnd(of: .requests(partition), at: 10_000) } }
      }
      if isToBeKilled(&random) { return .kill }
      var left = lanes
      while let lane = left.randomElement(using: &random) {
        // Over one record alone it would be held against that record.
        if lanes.allSatisfy({ $0.group.map { $0.offsets.count > 1 } ?? true }), isToBeKilled(&random) { return .kill }
        if let group = lane.group {
          lane.group = nil
          if what.isCommitted, Bool.random(using: &random) {
            starts[group.partition] = max(starts[group.partition] ?? 0, group.offsets.upperBound)
          }
        }
        switch await step(lane, deadly) {
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
    private func step(_ lane: Lane, _ deadly: Set<Record>) async -> End? {
      let through = lane.bisection.takeThrough { partition in lane.records.contains { .requests($0.partition) == partition } }
      if !through.isEmpty {
        lane.detector.cleared(through)
        lane.detector.bisects(lane.bisection.isNeeded)
      }
      guard let first = lane.records.first else {
        lane.detector.bisects(false)
        lane.detector.returnPermit()
        return .all
      }
      guard lane.detector.isBisecting else {
        lane.detector.returnPermit()
        return lane.records.contains(where: deadly.contains) ? .record : .all
      }
      guard lane.detector.takePermit() else { return nil }
      let partition = MarkedPartition.requests(first.partition)
      let end = lane.bisection.end(from: first.offset, of: partition)
      #expect(end > first.offset)
      let records = lane.records.prefix { $0.partition == first.partition && $0.offset < end }
      lane.records = lane.records.dropFirst(records.count)
      let group = first.offset..<(records.last?.offset ?? first.offset) + 1
      lane.bisection.began(records.count, of: partition, to: group.upperBound)
      let remedy = lane.bisection.remedy(for: first.offset, of: partition)
      await note(partition, CrashLoopDetector.Group(first: first.offset, width: Int64(group.count)), lane.detector)
      lane.group = (first.partition, group)
      if let remedy {
        #expect(records.count == 1)
        if deadly.contains(first) {
          if found.remedies[first]?.last != remedy { found.remedies[first, default: []].append(remedy) }
        } else {
          found.others.append(first)
        }
      }
      guard records.contains(where: deadly.contains) else { return nil }
      return fault == .record ? remedy != .deadLetter ? .record : nil : remedy == nil ? .record : nil
    }

    private func note(_ partition: MarkedPartition, _ group: CrashLoopDetector.Group, _ detector: CrashLoopDetector) async {
      await withCheckedContinuation { continuation in detector.note(partition, group) { continuation.resume() } }
    }

    func close() { shards?.close() }
  }
}
