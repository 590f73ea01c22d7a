import Testing

@testable import Notifications
@testable import Operations

/// What the topics say in a test: requests, the journal and events; and what the audit finds in it.
///
/// Times are milliseconds after a beginning; reading begins an hour after it. Requests lie in partition 0, so does their journal, and events in
/// partition 1. Requests of which a test says nothing else are journaled as judged, and not kept.
struct AuditHistory {
  static let beginning: Int64 = 1_700_000_000_000
  static let hour: Int64 = 3_600_000

  var facts: [AuditFact] = []
  /// What requests and firings state on schedules.
  var schedules: [ScheduleFact] = []
  /// What the journal says, in its order; each is a record of it.
  var journal: [Entry] = []
  /// The offsets of requests of which the journal says nothing.
  var unjournaled: Set<Int64> = []
  var rules = AuditRules(
    now: beginning + hour, written: beginning + hour, clockSlack: 5_000, beginsAtBeginning: true,
    requests: [0: .init(offsets: 0..<1_000, since: beginning)])

  init() { rules.settings.takeover = 60_000 }

  /// An entry of the journal, which is as late as its place among the others.
  struct Entry {
    var offset: Int64
    var time: Int64
    var worker: Name = "t"
    var incarnation: UInt16 = 0
    var record: Int64?
    var verdict = Outcome.duplicate
    /// Of a person's request: the devices of a page.
    var devices: [(device: UInt64, verdict: Outcome)]?
    /// It is one of several pages; then only the last has the devices of all.
    var isPage = false
    var all: [UInt64]?
    /// The request that had scheduled what this one ends.
    var superseded: Int?
  }

  static func id(_ number: Int) -> NotificationID { NotificationID(high: 7, low: UInt64(number)) }

  /// A request of the id `id`, at the offset `at` unless said otherwise.
  ///
  /// - Parameters:
  ///   - device: whom it is for; nil: a person.
  ///   - collapse: the number of a collapse id; nil: the id is the identifier.
  ///   - end: when it may not be shown any more; a day later unless said otherwise.
  mutating func publish(
    _ id: Int, for device: UInt64? = 1, collapse: UInt64? = nil, offset: Int64? = nil, source: Int64? = nil, at time: Int64 = 0,
    end: Int64 = 86_400_000, _ flags: AuditFact.Flags = []
  ) {
    var fact = self.fact(.request, id, device ?? 0, collapse, source ?? offset ?? Int64(id), time)
    fact.flags.formUnion(flags)
    if device == nil { fact.flags.insert(.isForUser) }
    if flags.contains(.isLater) { fact.statement = Self.schedule(id) }
    fact.offset = offset ?? Int64(id)
    fact.partition = 0
    fact.number = Self.beginning + end
    facts.append(fact)
  }

  // MARK: Schedules

  /// A request that is scheduled. It counts by milliseconds after its publication; without an interval it has a calendar trigger.
  mutating func schedule(
    _ id: Int, at time: Int64 = 0, interval: Int64? = 60_000, repeats: Bool = true, notBefore: Int64? = nil, superseding former: Int? = nil
  ) {
    publish(id, at: time, end: time + 86_400_000, .isLater)
    judge(id, .scheduled, at: time + 10, superseding: former)
    let trigger = ScheduleFact.Trigger(
      requested: Self.beginning + time, interval: interval, notBefore: notBefore.map { Self.beginning + $0 }, repeats: repeats)
    schedules.append(ScheduleFact(schedule: Self.schedule(id), statement: .request(trigger), partition: 0, offset: Int64(id)))
  }

  /// The record of a firing. Unless it is `ignored`, it takes effect, and its device gets the occurrence.
  mutating func fire(
    _ id: Int, of schedule: Int, _ name: Int64, after previous: Int64 = 0, due: Int64, at time: Int64? = nil, zone: UInt64 = 0,
    _ verdict: Outcome = .queued, isSkipped: Bool = false
  ) {
    let time = time ?? due
    publish(id, at: time, end: verdict == .expired ? time : time + 86_400_000, .isFiring)
    facts[facts.count - 1].statement = Self.schedule(schedule)
    judge(id, verdict, at: time + 10)
    if verdict == .expired { tell(.expired, id, at: time + 10, isSkipped ? .isSkipped : []) }
    if verdict == .queued { tell(.delivered, id, at: time + 20) }
    let firing = ScheduleFact.Firing(
      id: Self.id(id), at: Self.beginning + time, due: Self.beginning + due, name: name, previous: previous, zone: zone, home: 0)
    schedules.append(ScheduleFact(schedule: Self.schedule(schedule), statement: .firing(firing), partition: 0, offset: Int64(id)))
  }

  /// A request that cancels what the other one had scheduled.
  mutating func cancel(_ id: Int, of schedule: Int, at time: Int64) {
    publish(id, at: time, .isRemoval)
    judge(id, .carriedOut, at: time + 10, superseding: schedule)
    tell(.canceled, schedule, at: time + 10, .namesSuccessor)
  }

  private static func schedule(_ id: Int) -> UInt64 { ScheduleFact.schedule(reference(id)) }

  private static func reference(_ id: Int) -> JournalReference {
    let revision = Revision(timestamp: UInt64(Self.beginning) + UInt64(id), partition: 0, offset: UInt64(id))
    return JournalReference(revision: revision, id: Self.id(id))
  }

  /// Two further requests come to the device, long after the others and far apart: what it was not given before is overlooked.
  mutating func deliverLaterOnes() {
    for id in 3...4 {
      publish(id, at: Int64(id) * 600_000)
      keep(id, at: Int64(id) * 600_000)
      tell(.delivered, id, at: Int64(id) * 600_000 + 10)
    }
  }

  /// An event of a request on a device (0: none).
  mutating func tell(
    _ outcome: Outcome, _ id: Int, on device: UInt64 = 1, collapse: UInt64? = nil, source: Int64? = nil, at time: Int64,
    number: Int64 = 0, worker: UInt32 = 1, statement: UInt64? = nil, _ flags: AuditFact.Flags = []
  ) {
    tell(
      .told(outcome), id, on: device, collapse: collapse, source: source, at: time, number: number, worker: worker, statement: statement,
      flags)
  }

  /// The same of any kind of fact.
  mutating func tell(
    _ kind: AuditFact.Kind, _ id: Int, on device: UInt64 = 1, collapse: UInt64? = nil, source: Int64? = nil, at time: Int64,
    number: Int64 = 0, worker: UInt32 = 1, statement: UInt64? = nil, _ flags: AuditFact.Flags = []
  ) {
    var fact = self.fact(kind, id, device, collapse, source ?? Int64(id), time)
    fact.flags.formUnion(flags)
    fact.partition = 1
    fact.offset = Int64(facts.count)
    fact.number = number
    fact.worker = worker
    // As the writers make it: from what happened, to whom, and where the request came from.
    var hasher: UInt64 = 14_695_981_039_346_656_037
    for part in [UInt64(kind.rank), UInt64(id), device, UInt64(bitPattern: fact.sourceOffset), UInt64(bitPattern: number)] {
      hasher = (hasher ^ part) &* 1_099_511_628_211
    }
    fact.statement = statement ?? hasher
    facts.append(fact)
  }

  /// The journal says that a request was kept: the one of this id, or the one at the offset.
  ///
  /// - Parameters:
  ///   - device: for a person's request, one of the devices; those that are named at one time stand on one page, which has all of them.
  ///   - record: the time of the record that it tells of, if that is not the request's.
  mutating func keep(
    _ id: Int, on device: UInt64 = 1, offset: Int64? = nil, at time: Int64, incarnation: UInt16 = 0, record: Int64? = nil
  ) {
    let offset = offset ?? Int64(id)
    guard facts.contains(where: { $0.kind == .request && $0.offset == offset && $0.flags.contains(.isForUser) }) else {
      return write(.init(offset: offset, time: time, incarnation: incarnation, record: record, verdict: .queued))
    }
    if let last = journal.indices.last, journal[last].offset == offset, journal[last].time == time {
      journal[last].devices?.append((device, .queued))
    } else {
      write(.init(offset: offset, time: time, incarnation: incarnation, record: record, devices: [(device, .queued)]))
    }
  }

  /// The journal says that a request was judged otherwise.
  mutating func judge(_ id: Int, _ verdict: Outcome, offset: Int64? = nil, at time: Int64, superseding former: Int? = nil) {
    write(.init(offset: offset ?? Int64(id), time: time, verdict: verdict, superseded: former))
  }

  /// One page of a person's devices.
  ///
  /// - Parameter all: with the last page, the devices of all pages.
  mutating func page(
    _ id: Int, _ devices: [(UInt64, Outcome)], of all: [UInt64]? = nil, at time: Int64, worker: Name = "t"
  ) {
    write(Entry(offset: Int64(id), time: time, worker: worker, devices: devices, isPage: true, all: all))
  }

  private mutating func write(_ entry: Entry) { journal.append(entry) }

  private func fact(_ kind: AuditFact.Kind, _ id: Int, _ device: UInt64, _ collapse: UInt64?, _ source: Int64, _ time: Int64) -> AuditFact {
    var fact = AuditFact(kind)
    if fact.outcome?.isAboutDevice != true {
      fact.id = Self.id(id)
      fact.identifier = collapse.map { $0 + 1_000_000 } ?? UInt64(id) + 1
      fact.sourceOffset = source
      fact.sourcePartition = 0
      fact.revision = UInt64(Self.beginning + source)
      fact.flags = .isOfTopic
    }
    fact.device = device
    fact.time = Self.beginning + time
    return fact
  }

  /// What the audit finds, whatever order the facts come in.
  func findings(limit: Int = 20) -> AuditFindings {
    var findings = AuditFindings(limit: limit)
    var rules = rules
    for entry in entries { rules.incarnations[0] = max(rules.incarnations[0] ?? 0, entry.incarnation) }
    let joined = joined(rules).shuffled()
    var requests = joined.filter { $0.outcome?.isAboutDevice != true }
    var devices = joined.filter { $0.outcome?.isAboutDevice == true }
    var schedules = schedules
    let audit = RequestAudit(rules: rules, onSchedule: { schedules.append($0) }, handOn: { devices.append($0) })
    audit.check(&requests, &findings)
    schedules.shuffle()
    OccurrenceAudit(rules: rules).check(&schedules, &findings)
    devices.shuffle()
    DeviceAudit(rules: rules).check(&devices, &findings)
    return findings
  }

  /// The kinds of violation that are found, each as often as it is found.
  var violations: [Violation.Kind] { findings().violations.map(\.kind) }

  /// How the requests ended.
  var outcomes: [Outcome: Int] { findings().outcomes }

  // MARK: Joined

  private var requests: [AuditFact] { facts.filter { $0.kind == .request }.sorted { $0.offset < $1.offset } }

  /// The journal's entries as facts, as they are read.
  private var entries: [AuditFact] {
    let (requests, told) = (requests, Set(journal.map(\.offset)))
    var entries: [Entry] = requests.filter { !told.contains($0.offset) && !unjournaled.contains($0.offset) }.map { request in
      let isForUser = request.flags.contains(.isForUser)
      return Entry(offset: request.offset, time: request.time - Self.beginning + 1, devices: isForUser ? [] : nil)
    }
    entries += journal
    var facts: [AuditFact] = []
    for (place, entry) in entries.enumerated() {
      let request = requests.first { $0.offset == entry.offset }
      let published = request?.time ?? Self.beginning
      var (numbers, page): ([UInt64: UInt64], JournalEntry.Page) = ([:], JournalEntry.Page(devices: []))
      var closing = JournalEntry.Closing()
      let revision = Revision(timestamp: request?.revision ?? 0, partition: 0, offset: UInt64(clamping: entry.offset))
      for (device, verdict) in entry.devices ?? [] {
        numbers[Self.token(device).hash64()] = device
        page.devices.append(.init(Self.token(device), JournalJudgement(verdict, revision: revision)))
      }
      for device in entry.isPage ? entry.all ?? [] : page.devices.map({ numbers[$0.token.hash64()] ?? 0 }) {
        Array(Self.token(device).text.utf8).withUnsafeBytes { closing.add($0) }
      }
      if !entry.isPage || entry.all != nil { page.closing = closing }
      let content: JournalEntry.Content =
        entry.devices == nil
        ? .request(JournalJudgement(entry.verdict, revision: revision, other: entry.superseded.map(Self.reference))) : .page(page)
      let record = JournalRecord(worker: entry.worker, incarnation: UInt32(entry.incarnation), judgedAt: Self.beginning + entry.time)
      let timestamp = entry.record.map { Self.beginning + $0 } ?? published
      AuditFact(record, at: RecordPlace(partition: 0, offset: Int64(place)))
        .forEach(of: JournalEntry(offset: entry.offset, timestamp: timestamp, content: content)) { fact in
          var fact = fact
          fact.device = numbers[fact.device] ?? 0
          facts.append(fact)
        }
    }
    return facts
  }

  private static func token(_ device: UInt64) -> DeviceToken {
    DeviceToken(String(repeating: "0", count: 48) + String(device + 1 << 60, radix: 16))!
  }

  /// What comes out when requests and the journal are joined, in whatever order each of them is read.
  private func joined(_ rules: AuditRules) -> [AuditFact] {
    var out = facts.filter { $0.kind != .request }
    let count = out.count
    var join = JournalJoin(expecting: 1_000, in: "/tmp")
    let entries = entries.filter { rules.requests[0]?.offsets.contains($0.sourceOffset) == true }
    for fact in requests.shuffled() + entries.shuffled() { #expect(throws: Never.self) { try join.add(fact) } }
    #expect(throws: Never.self) { try join.join(rules) { out.append($0) } }
    #expect(out.dropFirst(count).count { $0.kind == .request } == requests.count, "each request comes out once")
    return out
  }
}
