import TestSupport
import Testing
import Worker

@testable import Kafka
@testable import Store
@testable import Transform

/// What a lane counts on, in random histories of a Redis that loses the end of what was written to it.
@Suite struct CheckpointTableTests {
  /// Buckets of Redis, a lane that applies records to them, and other lanes. Each record belongs to one bucket. It is naive: a bucket is the
  /// list of all that was ever written to it, and loses its end.
  private struct World {
    enum Write {
      case applied(Int, offset: Int64)
      case marker(MarkedPartition, Marker)
    }

    /// A partition as the lane's consumer has it.
    struct Reading {
      var generation: UInt32 = 0
      /// The offset of the next record; nil where it is only on offer.
      var position: Int64?
      var inFlight: Set<Int64> = []
    }

    static let (partitions, buckets) = (3, 4)
    var random: SeededRandom
    var table = CheckpointTable(Topics())
    var redis = Array(repeating: [Write](), count: buckets)
    var lane = Array(repeating: Reading(), count: partitions)
    /// How often each partition's topic was made again, as the group has noted; Redis may lose every marker that says so.
    let incarnations: [UInt32]
    /// Redis is verified: nothing is applied before the markers were compared.
    var isSound = false
    /// What was found wrong; and how often things happened that a history is to have.
    var failure: String?
    var (verified, rewound, taken, unanswered, silent) = (0, 0, 0, 0, 0)

    init(_ seed: UInt64) {
      random = SeededRandom(seed: seed)
      incarnations = (0..<Self.partitions).map { UInt32(truncatingIfNeeded: seed / 2 + UInt64($0)) % 3 }
    }

    // MARK: What there is

    static func name(_ partition: Int) -> TopicPartition {
      partition == 0 ? TopicPartition(Topics().devices, 0) : TopicPartition(Topics().requests, Int32(partition))
    }

    func marked(_ partition: Int) -> MarkedPartition { table.marked(Self.name(partition)) }

    func assigned(_ partition: Int) -> AssignedPartition {
      AssignedPartition(
        topicPartition: Self.name(partition), index: partition, generation: lane[partition].generation, startOffset: nil, startsAgain: false
      )
    }

    static func time(below offset: Int64) -> Int64 { offset == 0 ? -1 : 1_000 + offset }

    func found(_ partition: Int) -> [Marker?] {
      redis.map { bucket in
        for case .marker(marked(partition), let marker) in bucket.reversed() { return marker }
        return nil
      }
    }

    func isApplied(_ partition: Int, _ offset: Int64) -> Bool {
      redis[Int(offset) % Self.buckets].contains { if case .applied(partition, offset) = $0 { true } else { false } }
    }

    // MARK: What happens

    mutating func happen() {
      let partition = Int.random(in: 0..<Self.partitions, using: &random)
      switch Int.random(in: 0..<100, using: &random) {
      case ..<40: read(partition)
      case ..<65: apply(partition)
      case ..<77: raise()
      case ..<88: compare()
      case ..<95: lose()
      case ..<98: giveUp(partition)
      default: takeAway(partition)
      }
    }

    private mutating func read(_ partition: Int) {
      guard isSound, let offset = lane[partition].position, lane[partition].inFlight.count < 5 else { return }
      lane[partition].position = offset + 1
      switch table.compareFirstRecord(of: Self.name(partition), partition, offset: offset, timestamp: Self.time(below: offset + 1)) {
      case .work: lane[partition].inFlight.insert(offset)
      case .skip: if !isApplied(partition, offset) { failure = "\(partition)/\(offset) is skipped and was not applied" }
      case .madeAgain: failure = "\(partition)/\(offset) is taken for one of another topic"
      }
    }

    private mutating func apply(_ partition: Int) {
      guard isSound, let offset = lane[partition].inFlight.randomElement(using: &random) else { return }
      lane[partition].inFlight.remove(offset)
      redis[Int(offset) % Self.buckets].append(.applied(partition, offset: offset))
    }

    private mutating func raise() {
      let offsets: [CommitOffset] = lane.indices.compactMap { partition in
        guard let position = lane[partition].position, !table.isUnconfirmed(partition) else { return nil }
        let offset = lane[partition].inFlight.min() ?? position
        return CommitOffset(
          partition: partition, generation: lane[partition].generation, offset: offset, timestamp: Self.time(below: offset))
      }
      // While Redis may have lost something no marker is raised: the lane's phase sees to that.
      guard isSound else { return }
      let raise = table.raise(offsets)
      guard !raise.changes.isEmpty else { return }
      let changes = Dictionary(uniqueKeysWithValues: (0..<Self.buckets).map { ($0, raise.changes) })
      let refused = write(changes)
      // Where a marker stands already nobody is asked.
      for done in table.raised(raise, refused: refused) where !raise.reached.contains(done) {
        let isThere = found(done.partition).allSatisfy { $0?.offset == done.offset }
        if !isThere { failure = "\(done) is said to stand in every bucket" }
      }
      if refused?.isEmpty != true { sign() }
    }

    /// Makes changes where what is expected stands there; answers which of them some bucket has not made, or nil where a call was not answered.
    private mutating func write(_ changes: [Int: [MarkerChange]]) -> Set<Int>? {
      var refused: Set<Int> = []
      var isAnswered = true
      for (bucket, changes) in changes.sorted(by: { $0.key < $1.key }) {
        if Int.random(in: 0..<20, using: &random) == 0 {
          isAnswered = false
          unanswered += 1
          if Bool.random(using: &random) { continue }
        }
        for (place, change) in changes.enumerated() {
          var present: Marker?
          for case .marker(change.partition, let marker) in redis[bucket] { present = marker }
          if present == change.expected {
            redis[bucket].append(.marker(change.partition, change.new))
          } else if present != change.new {
            refused.insert(place)
          }
        }
      }
      return isAnswered ? refused : nil
    }

    /// A bucket loses the end of what was written to it, which the lane is told, or finds where a marker that it has left there is lost, too.
    private mutating func lose() {
      let bucket = Int.random(in: 0..<Self.buckets, using: &random)
      redis[bucket].removeLast(Int.random(in: 0...min(12, redis[bucket].count), using: &random))
      let isSeen = lane.indices.contains { partition in
        lane[partition].position != nil && (found(partition)[bucket]?.offset ?? -1) < (table.wanted(partition)?.offset ?? 0)
      }
      guard isSeen, Bool.random(using: &random) else { return sign() }
      silent += 1
      compare()
    }

    private mutating func sign() {
      isSound = false
      table.distrust()
    }

    /// The group takes a partition away and gives it back: what is in hand is nobody's.
    private mutating func giveUp(_ partition: Int) {
      table.left([assigned(partition)])
      lane[partition] = Reading(generation: lane[partition].generation + 1)
      isSound = false
    }

    /// Another lane has the partition, and goes on where the markers are; this one does not know yet.
    private mutating func takeAway(_ partition: Int) {
      guard lane[partition].position != nil else { return }
      let start = found(partition).map { $0?.offset ?? 0 }.min() ?? 0
      let end = start + 10
      for offset in start..<end where !isApplied(partition, offset) {
        redis[Int(offset) % Self.buckets].append(.applied(partition, offset: offset))
      }
      let marker = Marker(offset: end, timestamp: Self.time(below: end), incarnation: incarnations[partition])
      for bucket in redis.indices { redis[bucket].append(.marker(marked(partition), marker)) }
    }

    private mutating func compare() {
      let owned = table.begun(lane.indices.filter { lane[$0].position != nil }.map(assigned))
      switch table.compare(owned, owned.map { found($0.index) }, isProbe: false) {
      case .otherOwner:
        taken += 1
        for partition in lane.indices { giveUp(partition) }
        return
      case .own(let rewinds, let level):
        for rewind in rewinds {
          rewound += 1
          giveUp(rewind.partition.index)
        }
        if !level.changes.isEmpty, write(level.changes)?.isEmpty != true { return }
        table.leveled(level)
        if !rewinds.isEmpty { return }
      }
      let offers = lane.indices.filter { lane[$0].position == nil }
      let unmarked = offers.filter { found($0).allSatisfy { $0 == nil } }
      let noted = Dictionary(uniqueKeysWithValues: unmarked.map { (Self.name($0), incarnations[$0]) })
      let starts = table.starts(offers.map(assigned), offers.map(found), noted: noted)
      if !starts.changes.isEmpty, write(starts.changes)?.isEmpty != true { return }
      for (partition, start) in zip(offers, starts.markers) {
        lane[partition].generation += 1
        lane[partition].position = start.readingOffset ?? 0
        table.began(assigned(partition), at: start)
      }
      isSound = true
      verified += 1
      check()
    }

    /// What is not read any more was applied and is there.
    private mutating func check() {
      for partition in lane.indices {
        guard let position = lane[partition].position else { continue }
        if table.incarnation(partition) != incarnations[partition] {
          failure = "\(partition) is of incarnation \(table.incarnation(partition))"
        }
        for offset in 0..<position where !lane[partition].inFlight.contains(offset) && !isApplied(partition, offset) {
          failure = "\(partition)/\(offset) is lost: reading goes on at \(position)"
        }
        let marker = table.marker(partition)
        for offset in 0..<marker where !isApplied(partition, offset) { failure = "\(partition)/\(offset) is lost, and below \(marker)" }
      }
    }
  }

  @Test func whatIsNotReadAnyMoreWasAppliedAndIsThereWhateverRedisLoses() {
    var (verified, rewound, taken, unanswered, silent) = (0, 0, 0, 0, 0)
    for seed in UInt64(1)...400 {
      var world = World(seed)
      for step in 0..<300 {
        world.happen()
        guard let failure = world.failure else { continue }
        Issue.record("seed \(seed), step \(step): \(failure)")
        return
      }
      verified += world.verified
      rewound += world.rewound
      taken += world.taken
      unanswered += world.unanswered
      silent += world.silent
    }
    #expect(verified > 4_000 && rewound > 4_000, "\(verified), \(rewound)")
    #expect(taken > 400 && unanswered > 500 && silent > 1_000, "\(taken), \(unanswered), \(silent)")
  }

  @Test func `a log that ends at the marker or behind it confirms the marker without a record`() {
    let partition = AssignedPartition(
      topicPartition: World.name(1), index: 1, generation: 1, startOffset: nil, startsAgain: false)
    var table = CheckpointTable(Topics())
    table.began(partition, at: Marker(offset: 10, timestamp: 1_000, incarnation: 0))
    table.reachedEnd(1, at: 9)
    #expect(table.hasUnconfirmed, "a log that ends below the marker is another one, whose first record shows it")
    table.reachedEnd(1, at: 10)
    #expect(!table.hasUnconfirmed && table.marker(1) == 10)
    let raise = table.raise([CommitOffset(partition: 1, generation: 1, offset: 14, timestamp: 1_000)])
    #expect(raise.changes.count == 1)
  }

  @Test func `a missing marker does not bring an earlier incarnation back`() {
    let partition = AssignedPartition(
      topicPartition: World.name(1), index: 1, generation: 1, startOffset: nil, startsAgain: false)
    let table = CheckpointTable(Topics())
    let marker = Marker(offset: 10, timestamp: 1_000, incarnation: 2)
    let beginning = Marker(offset: 0, timestamp: -1, incarnation: 2)
    #expect(table.starts([partition], [[marker, nil, marker]], noted: [:]).markers == [beginning])
    #expect(table.starts([partition], [[nil, nil, nil]], noted: [partition.topicPartition: 2]).markers == [beginning])
    #expect(table.starts([partition], [[nil, nil, nil]], noted: [:]).markers == [.beginning])
  }

  @Test func `only the first second marker of an assignment is set whatever stands there`() {
    let partition = AssignedPartition(
      topicPartition: World.name(1), index: 1, generation: 1, startOffset: nil, startsAgain: false)
    var table = CheckpointTable(Topics())
    func readable(_ offset: Int64) -> (markers: [Int: Marker], changes: [MarkerChange]) {
      table.readableMarkers(for: [CommitOffset(partition: 1, generation: 1, offset: offset, timestamp: 1_000 + offset)])
    }
    table.began(partition, at: Marker(offset: 5, timestamp: 1_005))
    #expect(readable(8).changes.isEmpty, "the marker is not confirmed")
    table.reachedEnd(1, at: 5)
    let first = readable(8)
    #expect(first.changes.map(\.isForced) == [true])
    table.wroteReadable(first.markers, isComplete: true)
    #expect(readable(8).changes.isEmpty, "it stands there already")
    let next = readable(9)
    #expect(next.changes.map(\.isForced) == [false] && next.changes.map(\.expected) == [first.markers[1]])
    table.wroteReadable(next.markers, isComplete: false)
    #expect(readable(9).changes.map(\.isForced) == [true], "nobody knows which of them stands there")
  }

  @Test func onlyAPartitionThatIsThereHasUnconfirmedMarkers() {
    var table = CheckpointTable(Topics())
    func assigned(_ partition: Int) -> AssignedPartition {
      AssignedPartition(
        topicPartition: TopicPartition(Topics().requests, Int32(partition)), index: partition, generation: 1, startOffset: nil,
        startsAgain: false)
    }
    for partition in 0..<2 { table.began(assigned(partition), at: Marker(offset: 5, timestamp: 1_005)) }
    #expect(table.hasUnconfirmed)
    table.left([assigned(0)])
    #expect(table.hasUnconfirmed && table.isUnconfirmed(1) && !table.isUnconfirmed(0))
    table.left([assigned(1)])
    #expect(!table.hasUnconfirmed)
  }
}
