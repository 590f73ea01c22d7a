import Kafka
import Notifications

/// Entries of the journal that met no request where both were read side by side: a lane had rewound, a record had waited for hours.
///
/// They are spilled by the places of their requests. When all is read those requests are read once more, and joined with them.
struct LateEntries: ~Copyable {
  /// A fact, and the timestamp of the record of `requests` that it comes from or tells of.
  struct Placed: Sendable, Hashable {
    var timestamp: Int64
    var fact: AuditFact

    fileprivate var offset: Int64 { fact.kind == .request ? fact.offset : fact.sourceOffset }
  }

  /// Which of so many consecutive records are wanted.
  fileprivate struct Block {
    var wanted: [UInt64] = Array(repeating: 0, count: Self.length / 64)
    /// The newest record that an entry tells of.
    var newest = Int64.min
    static let length = 1024
  }

  private var spill: Spill<Placed>
  private var blocks: [Int32: [Int64: Block]] = [:]
  /// How many there are.
  private(set) var count = 0

  /// - Parameter expected: records that are read, of which a few are late.
  init(expecting expected: Int64, in folder: String) { spill = Spill(expecting: expected / 8, in: folder) }

  /// Bytes on disk.
  var bytesOnDisk: Int64 { spill.bytesOnDisk }

  // MARK: What is late

  /// Takes an entry.
  mutating func add(_ note: JournalNote) throws(SpillError) {
    count += 1
    for fact in [note.fact] + note.more { try put(Placed(timestamp: note.timestamp, fact: fact), note.fact.sourcePartition) }
    let (number, place) = note.fact.sourceOffset.quotientAndRemainder(dividingBy: Int64(Block.length))
    blocks[note.fact.sourcePartition, default: [:]][number, default: Block()].want(Int(place), note.timestamp)
  }

  /// Takes a request that was read once more.
  mutating func add(_ request: AuditFact) throws(SpillError) {
    try put(Placed(timestamp: request.time, fact: request), request.partition)
  }

  private mutating func put(_ placed: Placed, _ partition: Int32) throws(SpillError) {
    try spill.add(placed, hash: UInt64(bitPattern: placed.offset) &* 31 &+ UInt64(UInt32(bitPattern: partition)))
  }

  /// Whether the request at a place is wanted.
  func wants(_ partition: Int32, _ offset: Int64) -> Bool {
    let (number, place) = offset.quotientAndRemainder(dividingBy: Int64(Block.length))
    return blocks[partition]?[number]?.wants(Int(place)) == true
  }

  /// The requests that are to be read once more, in rounds with one stretch of a partition each. Entries for records that are older than all
  /// audited ones of their partition tell of a former topic.
  func rounds(of topic: String, _ audited: [Int32: AuditRules.Requests]) -> [[TopicStretch]] {
    var rounds: [[TopicStretch]] = []
    for (partition, blocks) in blocks {
      guard let requests = audited[partition] else { continue }
      var stretches: [Range<Int64>] = []
      for number in blocks.filter({ $0.value.newest >= requests.since }).keys.sorted() {
        let offsets = (number * Int64(Block.length)..<(number + 1) * Int64(Block.length)).clamped(to: requests.offsets)
        guard !offsets.isEmpty else { continue }
        if let last = stretches.last, offsets.lowerBound - last.upperBound <= Self.nearby {
          stretches[stretches.count - 1] = last.lowerBound..<offsets.upperBound
        } else {
          stretches.append(offsets)
        }
      }
      for (round, offsets) in stretches.enumerated() {
        if round == rounds.count { rounds.append([]) }
        rounds[round].append(TopicStretch(TopicPartition(topic, partition), offsets.lowerBound, offsets.upperBound))
      }
    }
    return rounds
  }

  /// Reading over so many records costs less than another round.
  private static let nearby: Int64 = 50_000

  // MARK: Joined

  /// Calls `body` with what the entries say, each of the request that lies at its place; what finds none counts for nothing.
  mutating func join(_ body: (AuditFact) -> Void) throws(SpillError) {
    for part in 0..<spill.parts {
      var facts = try spill.take(part)
      facts.sort(by: Self.precedes)
      var request: Placed?
      for placed in facts {
        if placed.fact.kind == .request {
          request = placed
        } else if let request, request.fact.partition == placed.fact.sourcePartition, request.offset == placed.offset,
          request.timestamp == placed.timestamp
        {
          body(placed.fact.told(of: request.fact))
        }
      }
    }
  }

  /// By place, the request before what is told of it.
  private static func precedes(_ a: Placed, _ b: Placed) -> Bool {
    let (partitionA, partitionB) = (a.partition, b.partition)
    if partitionA != partitionB { return partitionA < partitionB }
    if a.offset != b.offset { return a.offset < b.offset }
    return a.fact.kind == .request && b.fact.kind != .request
  }
}

extension LateEntries.Placed {
  fileprivate var partition: Int32 { fact.kind == .request ? fact.partition : fact.sourcePartition }
}

extension LateEntries.Block {
  fileprivate mutating func want(_ place: Int, _ timestamp: Int64) {
    wanted[place / 64] |= 1 << UInt64(place % 64)
    newest = max(newest, timestamp)
  }

  fileprivate func wants(_ place: Int) -> Bool { wanted[place / 64] >> UInt64(place % 64) & 1 != 0 }
}
