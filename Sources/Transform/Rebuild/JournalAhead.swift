import Notifications

/// What the journal tells of requests that a rebuilding is about to judge again. A value.
///
/// The order of requests in different partitions is not the order in which the workers judged them, and what a device remembers of ids is
/// bounded: judged again, another one of two requests with the same apns-id may be the first. So the journal decides which requests came to
/// which mailbox. Each partition of it is read ahead of the requests in the partition of the same number, until it has told of the next one.
struct JournalAhead {
  /// Whether a request came to a device's mailbox.
  enum Verdict: Equatable {
    /// It did, with the revision that its record gives it; or it had expired, and was only remembered.
    case kept
    /// It did, with this revision.
    indirect case keptAt(Revision)
    /// It did not: the device had the same id or a newer revision, the person had another device, an application was stopped, …
    case notKept
  }

  /// What the journal tells of one request.
  struct Telling {
    /// The timestamp of the request's record.
    let timestamp: Int64
    /// The verdict on the whole request, which is for one device, or came to none.
    fileprivate var verdict: Verdict?
    fileprivate var person: Person?

    fileprivate final class Person {
      /// The verdicts by the hashes of the devices' tokens.
      var devices: [UInt64: Verdict] = [:]
      /// How many devices there are, as far as the last page has come.
      var count: Int?
    }

    fileprivate init(timestamp: Int64) { self.timestamp = timestamp }

    fileprivate var isComplete: Bool { verdict != nil || person?.count != nil }

    fileprivate var size: Int { 1 + (person?.devices.count ?? 0) }

    /// Whether all devices are known that it was judged for.
    private var hasAllDevices: Bool { person.map { $0.devices.count >= $0.count ?? .max } ?? (verdict != nil) }

    /// Whether it came to no mailbox.
    var isKeptNowhere: Bool {
      let isKept = verdict.map { $0 != .notKept } ?? false
      return hasAllDevices && !isKept && person?.devices.values.allSatisfy { $0 == .notKept } != false
    }

    /// The verdict at a device; nil where the journal does not say.
    func verdict(at device: UnsafeRawBufferPointer) -> Verdict? {
      guard let person else { return verdict }
      return person.devices[DeviceToken.hash(device)] ?? (hasAllDevices ? .notKept : nil)
    }
  }

  /// Whether a request may be judged.
  enum Answer {
    /// The journal has not told of it yet.
    case wait
    /// The journal has told of it.
    case told(Telling)
    /// The journal does not tell of it: it is judged by what is remembered.
    case untold
  }

  /// What was read ahead of one partition.
  fileprivate struct Partition {
    let number: Int32
    let incarnation: UInt32
    /// Requests below are judged.
    var next: Int64
    /// Where the journal's partition ends; nil where it has been read, or has nothing.
    var end: Int64?
    var tellings: [Int64: Telling] = [:]
    /// Requests and devices that were told of.
    var size = 0
  }

  private var partitions: [Int32: Partition] = [:]
  /// Requests and devices that were told of ahead, in all partitions.
  private(set) var size = 0
  private let limit: Int

  /// - Parameter limit: how many requests and devices are kept, about fifty bytes each; a request of which so much more does not tell is
  ///   judged by what is remembered.
  init(limit: Int = 1_000_000) { self.limit = limit }

  /// A partition of requests is judged from an offset on.
  ///
  /// - Parameter end: where the journal's partition ends; nil where it has nothing.
  mutating func add(_ partition: Int32, from first: Int64, incarnation: UInt32, journal end: Int64?) {
    partitions[partition] = Partition(number: partition, incarnation: incarnation, next: first, end: end)
  }

  /// Whether the journal's partition is to be read on.
  ///
  /// - Parameter isAwaited: a request waits for it.
  func wantsMore(_ partition: Int32, isAwaited: Bool) -> Bool {
    guard let known = partitions[partition], known.end != nil else { return false }
    return known.size < share || isAwaited && size < limit
  }

  /// What each partition may have read ahead, whatever the others have.
  private var share: Int { limit / (2 * max(1, partitions.count)) }

  /// Takes a record of the journal; what is none, or tells of a topic that was deleted since, says nothing.
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

  /// Takes what the journal tells of one request. Of several tellings of a request, as after a loss of Redis, what was kept once counts as kept.
  mutating func take(_ entry: JournalEntry, of partition: Int32) { change(partition) { $0.take(entry) } }

  /// Asks what the journal tells of the next request of a partition. With another answer than to wait all below and itself are forgotten.
  mutating func tell(of partition: Int32, offset: Int64, timestamp: Int64) -> Answer {
    let isFull = size >= limit && partitions[partition]?.size ?? 0 >= share
    return change(partition) { $0.tell(offset, timestamp, isFull: isFull) } ?? .untold
  }

  /// Changes a partition in place: its tellings are many.
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
    // A worker that had stood still may have told of a record that lay there before.
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
    // Offsets without records leave tellings of none.
    let range = next...offset
    let gone = tellings.count < range.count ? tellings.keys.filter(range.contains) : Array(range)
    for offset in gone { size -= tellings.removeValue(forKey: offset)?.size ?? 0 }
    next = offset + 1
  }
}
