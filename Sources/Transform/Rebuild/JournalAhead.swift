import Notifications

/// The journal's facts about requests that a rebuild will judge again. A value.
///
/// The workers may have judged requests of different partitions in another order, and a device's window of ids is bounded. So of two
/// requests with one apns-id the other one could be the first now. Therefore the journal decides which requests came to which mailbox. Each
/// of its partitions is read ahead of the requests in the partition of the same number, until the entry of the next request is known.
struct JournalAhead {
  /// Whether a request came to a device's mailbox.
  enum Verdict: Equatable {
    /// It did, with its record's own revision; or it had expired, and only its id was remembered.
    case kept
    /// It did, with this revision.
    indirect case keptAt(Revision)
    /// It did not: the device had the same id or a newer revision, belonged to another person, the application was stopped, …
    case notKept
  }

  /// The journal's facts about one request.
  struct Telling {
    /// The timestamp of the request's record.
    let timestamp: Int64
    /// The verdict on a request that is for one device, or came to none.
    fileprivate var verdict: Verdict?
    fileprivate var person: Person?

    fileprivate final class Person {
      /// The verdicts by the hashes of the devices' tokens.
      var devices: [UInt64: Verdict] = [:]
      /// How many devices there are, once the last page is known.
      var count: Int?
    }

    fileprivate init(timestamp: Int64) { self.timestamp = timestamp }

    fileprivate var isComplete: Bool { verdict != nil || person?.count != nil }

    fileprivate var size: Int { 1 + (person?.devices.count ?? 0) }

    /// Whether all its devices are known.
    private var hasAllDevices: Bool { person.map { $0.devices.count >= $0.count ?? .max } ?? (verdict != nil) }

    /// Whether the request came to no mailbox.
    var isKeptNowhere: Bool {
      let isKept = verdict.map { $0 != .notKept } ?? false
      return hasAllDevices && !isKept && person?.devices.values.allSatisfy { $0 == .notKept } != false
    }

    /// The verdict at a device; nil if the journal has none.
    func verdict(at device: UnsafeRawBufferPointer) -> Verdict? {
      guard let person else { return verdict }
      return person.devices[DeviceToken.hash(device)] ?? (hasAllDevices ? .notKept : nil)
    }
  }

  /// Whether a request may be judged.
  enum Answer {
    /// Its entry in the journal was not read yet.
    case wait
    /// The journal has these facts.
    case told(Telling)
    /// The journal has no entry for it: the ids in Redis decide.
    case untold
  }

  /// The facts that were read ahead for one partition.
  fileprivate struct Partition {
    let number: Int32
    let incarnation: UInt32
    /// Requests below this offset are judged.
    var next: Int64
    /// The end of the journal's partition; nil if it was read, or is empty.
    var end: Int64?
    var tellings: [Int64: Telling] = [:]
    /// How many requests and devices it has facts about.
    var size = 0
  }

  private var partitions: [Int32: Partition] = [:]
  /// How many requests and devices all partitions have facts about.
  private(set) var size = 0
  private let limit: Int

  /// - Parameter limit: how many requests and devices are kept, about fifty bytes each. A request without an entry within that is judged by
  /// the ids in Redis.
  init(limit: Int = 1_000_000) { self.limit = limit }

  /// Adds a partition of requests, which is judged from an offset on.
  ///
  /// - Parameter end: the end of the journal's partition; nil if it is empty.
  mutating func add(_ partition: Int32, from first: Int64, incarnation: UInt32, journal end: Int64?) {
    partitions[partition] = Partition(number: partition, incarnation: incarnation, next: first, end: end)
  }

  /// Whether to read more of the journal's partition.
  ///
  /// - Parameter isAwaited: whether a request waits for it.
  func wantsMore(_ partition: Int32, isAwaited: Bool) -> Bool {
    guard let known = partitions[partition], known.end != nil else { return false }
    return known.size < share || isAwaited && size < limit
  }

  /// How much each partition may read ahead, regardless of the others.
  private var share: Int { limit / (2 * max(1, partitions.count)) }

  /// Takes a record of the journal. Other records, and those of a topic that was deleted since, are ignored.
  mutating func take(_ partition: Int32, offset: Int64, headers: [(name: String, value: String)], _ value: UnsafeRawBufferPointer?) {
    if let value, let journal = try? JournalRecord(headers: headers, value: value),
      journal.incarnation == partitions[partition]?.incarnation
    {
      try? journal.forEachEntry(in: value, partition: partition) { take($0, of: partition) }
    }
    reached(partition, offset + 1)
  }

  /// The journal's partition is read up to an offset.
  mutating func reached(_ partition: Int32, _ offset: Int64) {
    if let end = partitions[partition]?.end, offset >= end { partitions[partition]?.end = nil }
  }

  /// Takes the journal's entry for one request. If there are several, as after a loss of Redis, one that was kept counts.
  mutating func take(_ entry: JournalEntry, of partition: Int32) { change(partition) { $0.take(entry) } }

  /// Answers the facts about the next request of a partition. Unless it has to wait, it and all below are forgotten.
  mutating func tell(of partition: Int32, offset: Int64, timestamp: Int64) -> Answer {
    let isFull = size >= limit && partitions[partition]?.size ?? 0 >= share
    return change(partition) { $0.tell(offset, timestamp, isFull: isFull) } ?? .untold
  }

  /// Changes a partition in place, since copying its facts costs much.
  private mutating func change<Result>(_ partition: Int32, _ change: (inout Partition) -> Result) -> Result? {
    guard let index = partitions.index(forKey: partition) else { return nil }
    size -= partitions.values[index].size
    defer { size += partitions.values[index].size }
    return change(&partitions.values[index])
  }
}

extension JournalAhead.Partition {
  mutating func take(_ entry: JournalEntry) {
    guard entry.offset >= next else { return }
    let implied = Revision(SourcePosition(partition: number, offset: entry.offset, timestamp: entry.timestamp)).inIncarnation(incarnation)
    switch entry.content {
    case .extensions, .unreadable: return
    case .request(let judgement):
      change(entry) { $0.verdict = Self.union($0.verdict, Self.verdict(judgement, implied)) }
    case .page(let page):
      change(entry) { telling in
        let person = telling.person ?? JournalAhead.Telling.Person()
        telling.person = person
        for device in page.devices {
          let hash = device.token.hash64()
          person.devices[hash] = Self.union(person.devices[hash], Self.verdict(device.judgement, implied))
        }
        if let closing = page.closing { person.count = closing.devices }
      }
    }
  }

  private mutating func change(_ entry: JournalEntry, _ change: (inout JournalAhead.Telling) -> Void) {
    let known = tellings[entry.offset]
    // A stalled worker may have written about a former record at this offset.
    var telling = known.flatMap { $0.timestamp == entry.timestamp ? $0 : nil } ?? JournalAhead.Telling(timestamp: entry.timestamp)
    size -= known?.size ?? 0
    change(&telling)
    size += telling.size
    tellings[entry.offset] = telling
  }

  private static func verdict(_ judgement: JournalJudgement, _ implied: Revision) -> JournalAhead.Verdict {
    guard judgement.verdict.wasKept else { return .notKept }
    return judgement.revision == implied ? .kept : .keptAt(judgement.revision)
  }

  private static func union(_ former: JournalAhead.Verdict?, _ latter: JournalAhead.Verdict) -> JournalAhead.Verdict {
    latter == .notKept ? former ?? latter : latter
  }

  mutating func tell(_ offset: Int64, _ timestamp: Int64, isFull: Bool) -> JournalAhead.Answer {
    let telling = tellings[offset].flatMap { $0.timestamp == timestamp ? $0 : nil }
    if telling?.isComplete != true, end != nil, !isFull { return .wait }
    forget(through: offset)
    return telling.map { .told($0) } ?? .untold
  }

  private mutating func forget(through offset: Int64) {
    guard next <= offset else { return }
    // Some offsets of the range have no record, and so no facts.
    let range = next...offset
    let gone = tellings.count < range.count ? tellings.keys.filter(range.contains) : Array(range)
    for offset in gone { size -= tellings.removeValue(forKey: offset)?.size ?? 0 }
    next = offset + 1
  }
}
