import Kafka
import Notifications
import Worker

/// Journal entries without their request: a lane rewound, or a record waited for hours.
///
/// They are spilled by the positions of their requests. At the end those requests are read once more and joined with them.
struct LateEntries: ~Copyable {
  /// A fact, and the timestamp of its record of `requests`.
  struct Placed: Sendable, Hashable {
    var timestamp: Int64
    var fact: AuditFact

    /// The position of the request's record.
    fileprivate var place: RecordPlace {
      fact.kind == .request ? RecordPlace(partition: fact.partition, offset: fact.offset) : fact.source
    }
  }

  /// The wanted records among a block of consecutive ones.
  fileprivate struct Block {
    var wanted: [UInt64] = Array(repeating: 0, count: Self.length / 64)
    /// The timestamp of the newest wanted record.
    var newest = Int64.min
    static let length = 1024

    mutating func want(_ place: Int, _ timestamp: Int64) {
      wanted[place / 64] |= 1 << UInt64(place % 64)
      newest = max(newest, timestamp)
    }

    func wants(_ place: Int) -> Bool { wanted[place / 64] >> UInt64(place % 64) & 1 != 0 }
  }

  private var spill: Spill<Placed>
  private var blocks: [Int32: [Int64: Block]] = [:]
  /// The number of late entries.
  private(set) var count = 0

  /// - Parameter expected: the number of records to read, of which a few are late.
  init(expecting expected: Int64, in folder: String) { spill = Spill(expecting: expected / 8, in: folder) }

  /// Bytes on disk.
  var bytesOnDisk: Int64 { spill.bytesOnDisk }

  // MARK: Late entries

  /// Takes an entry.
  mutating func add(_ note: JournalNote) throws(SpillError) {
    count += 1
    for fact in [note.fact] + note.more { try put(Placed(timestamp: note.timestamp, fact: fact)) }
    let (number, place) = note.fact.sourceOffset.quotientAndRemainder(dividingBy: Int64(Block.length))
    blocks[note.fact.sourcePartition, default: [:]][number, default: Block()].want(Int(place), note.timestamp)
  }

  /// Takes a request that was read once more.
  mutating func add(_ request: AuditFact) throws(SpillError) {
    try put(Placed(timestamp: request.time, fact: request))
  }

  private mutating func put(_ placed: Placed) throws(SpillError) {
    let place = placed.place
    try spill.add(placed, hash: UInt64(bitPattern: place.offset) &* 31 &+ UInt64(UInt32(bitPattern: place.partition)))
  }

  /// Whether the request at a place is wanted.
  func wants(_ partition: Int32, _ offset: Int64) -> Bool {
    let (number, place) = offset.quotientAndRemainder(dividingBy: Int64(Block.length))
    return blocks[partition]?[number]?.wants(Int(place)) == true
  }

  /// Returns the requests to read once more, in rounds with one stretch of each partition.
  ///
  /// An entry of a former topic is older than all audited records of its partition, and is ignored.
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

  /// The distance at which one longer stretch is cheaper than another round.
  private static let nearby: Int64 = 50_000

  // MARK: Joining

  /// Calls `body` with each entry's facts and its request. Entries without a request do not count.
  mutating func join(_ body: (AuditFact) -> Void) throws(SpillError) {
    for part in 0..<spill.parts {
      var facts = try spill.take(part)
      // A request comes before its entries.
      facts.sort { ($0.place, $0.fact.kind == .request ? 0 : 1) < ($1.place, $1.fact.kind == .request ? 0 : 1) }
      var request: Placed?
      for placed in facts {
        if placed.fact.kind == .request {
          request = placed
        } else if let request, request.place == placed.place, request.timestamp == placed.timestamp {
          body(placed.fact.told(of: request.fact))
        }
      }
    }
  }
}
