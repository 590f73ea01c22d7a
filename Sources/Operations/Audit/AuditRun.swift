import EventLoop
import Kafka
import Notifications
import Store
import Worker

/// One audit: reads the topics, stores the facts, and judges them. Loop-confined.
///
/// It reads a partition of requests beside its journal, so a request and its verdict become one fact.
final class AuditRun {
  private(set) var findings: AuditFindings
  private(set) var spilled: Int64 = 0
  private let settings: AuditSettings
  private let rules: RequestRules
  private var auditRules: AuditRules
  /// The audited requests, by partition.
  ///
  /// They begin with the first request in the range, and end before the first one after it.
  private var audited: [Int32: AuditRules.Requests] = [:]
  /// The oldest records of events and journal partitions whose beginning was deleted.
  private var oldest: [(partition: TopicPartition, offset: Int64)] = []
  /// The time since which no event and no journal record was deleted.
  private var toldSince = Int64.min
  private let requests: [TopicStretch]
  private let journal: [TopicStretch]
  /// The events that existed when the audit began.
  let events: [TopicStretch]
  private let deadLetters: [TopicStretch]
  private var partitions: [Int32: AuditedPartition] = [:]
  /// Whether a partition is the journal's, by the reader's numbers.
  private var isJournal: [Bool?] = []
  private var late: LateEntries
  private var byRequest: Spill<AuditFact>
  private var byDevice: Spill<AuditFact>
  private var schedules: ScheduleFacts
  private var limits = AuditedLimits()
  private let applications: [TopicStretch]
  /// The first error while records were taken.
  private var failure: SpillError?

  /// Reads the ends of all topics. The requests come first, so that all later statements about them are read.
  init(_ rules: RequestRules, _ settings: AuditSettings, _ admin: Admin) async throws(KafkaError) {
    self.rules = rules
    self.settings = settings
    let now = WallClock.milliseconds()
    let range = settings.published
    // The requests before the range are counted for the rate limits.
    let counted = TimeRange(from: range.from.map { $0 - AuditedLimits.historyMilliseconds }, to: range.to)
    requests = try await admin.stretches(of: rules.topics.requests, counted)
    let logs = try await admin.ends(of: requests.map(\.partition))
    for stretch in requests { limits.begin(stretch, of: logs[stretch.partition] ?? stretch.offsets, from: counted.from) }
    applications = try await admin.stretches(ofOptional: rules.topics.applications).filter { $0.partition.partition == 0 }
    // The consequences of a request may come long after it.
    let after = TimeRange(from: range.from.map { $0 - ClockTrust.toleratedMilliseconds })
    journal = try await admin.stretches(of: rules.topics.journal, after)
    events = try await admin.stretches(of: rules.topics.events, after)
    deadLetters = try await admin.stretches(of: rules.topics.deadLetters, after)
    auditRules = AuditRules(
      now: now, written: WallClock.milliseconds(), grace: settings.grace, takeover: settings.takeover,
      forbidsPending: settings.forbidsPending)
    findings = AuditFindings(limit: settings.limit)
    let count = (requests + events + deadLetters).reduce(0) { $0 + Int64($1.offsets.count) }
    byRequest = Spill(expecting: count, in: settings.spillFolder)
    byDevice = Spill(expecting: count, in: settings.spillFolder)
    schedules = ScheduleFacts(parts: byRequest.parts, in: settings.spillFolder)
    late = LateEntries(expecting: count, in: settings.spillFolder)
    for stretches in [events, journal] { try await findOldest(stretches, now, admin) }
    var reach = Self.longestReach
    while reach > Self.shortestReach, reach * requests.count > Self.notesInMemory { reach /= 2 }
    for stretch in requests {
      let partition = AuditedPartition(stretch, reach: reach) { [unowned self] in put($0) }
      partitions[stretch.partition.partition] = partition
      if !journal.contains(where: { $0.partition.partition == stretch.partition.partition }) { partition.endJournal() }
    }
  }

  /// The maximum numbers of waiting journal entries, in all and for each partition.
  ///
  /// An entry takes about 120 bytes.
  private static let (notesInMemory, longestReach, shortestReach) = (1 << 18, 1 << 16, 1 << 12)

  /// Finds the time since when no event and no journal record was deleted.
  private func findOldest(_ stretches: [TopicStretch], _ now: Int64, _ admin: Admin) async throws(KafkaError) {
    let kept = try await admin.ends(of: stretches.map(\.partition))
    // The last record of an empty partition may be as old as the retention.
    if kept.values.contains(where: { $0.isEmpty && $0.lowerBound > 0 }), let topic = stretches.first?.partition.topic,
      let retention = try? await admin.settings(ofTopic: topic)["retention.ms"].flatMap({ Int64($0) }), retention >= 0
    {
      toldSince = max(toldSince, now - min(retention, now))
    }
    for stretch in stretches where !stretch.offsets.isEmpty && stretch.offsets.lowerBound > 0 {
      let first = stretch.offsets.lowerBound
      if first == kept[stretch.partition]?.lowerBound { oldest.append((stretch.partition, first)) }
    }
  }

  // MARK: Reading

  func read(_ reader: TopicReader) async throws {
    let facts = FactReader(rules)
    reader.onUnreadable = { [self] in findings.unreadable += $0.offsets.count }
    defer { reader.onUnreadable = nil }
    try await reader.read(at: oldest, "the oldest records") { [self] record in
      toldSince = max(toldSince, Timestamp.bounded(record.timestamp) + ClockTrust.toleratedMilliseconds)
    }
    try await reader.read(applications, "the applications", isCompacted: true) { [self] in limits.take(application: $0) }
    let isLimited = limits.isActive
    try await reader.read(requests + journal, "requests and the journal", in: self) { [self] record in
      if isOfJournal(record) {
        findings.journal += 1
        partitions[record.partition]?.takeJournal(record)
      } else {
        let counted = isLimited ? rules.withRecord(record) { limits.count($0) } : []
        let isAudited = isAudited(record)
        if isAudited { findings.records += 1 }
        var fact = isAudited ? facts.request(record) : nil
        fact?.flags.formUnion(counted)
        if let fact, !fact.flags.isDisjoint(with: [.isLater, .isFiring]), let schedule = facts.schedule(record) { put(schedule) }
        partitions[record.partition]?.take(fact, at: record.offset)
      }
    }
    for (number, partition) in partitions {
      // What that record says would count as missing, and its requests as lost.
      if let newer = partition.newer { throw StoreError.newer(.journal, newer, at: "\(rules.topics.journal), partition \(number)") }
      auditRules.incarnations[number] = partition.incarnation
      auditRules.unreadable[number] = partition.stretches.filter { $0.incarnation >= partition.incarnation }.map(\.offsets)
      findings.unreadable += partition.unreadable
    }
    partitions = [:]
    for stretch in requests {
      // Later requests are not audited.
      guard let offsets = audited[stretch.partition.partition]?.offsets else { continue }
      audited[stretch.partition.partition]?.offsets = offsets.clamped(to: stretch.offsets)
    }
    auditRules.requests = audited
    auditRules.beginsAtBeginning = requests.allSatisfy { stretch in
      stretch.offsets.isEmpty ? stretch.offsets.upperBound == 0 : audited[stretch.partition.partition]?.offsets.lowerBound == 0
    }
    try await reader.read(events, "events") { [self] record in
      findings.events += 1
      switch facts.event(record) {
      case .fact(let fact): put(fact)
      case .other: break
      case .unreadable: findings.unreadable += 1
      }
    }
    try await reader.read(deadLetters, "dead letters") { [self] record in
      // The letters' topic also has the states of letters.
      guard let fact = facts.deadLetter(record) else { return }
      findings.deadLetters += 1
      put(fact)
    }
    if let failure { throw failure }
    try await readLate(reader, facts)
  }

  /// Reads the requests again that were not near when their journal entries came.
  private func readLate(_ reader: TopicReader, _ facts: FactReader) async throws {
    guard late.count > 0 else { return }
    findings.late = late.count
    for round in late.rounds(of: rules.topics.requests, audited) {
      try await reader.read(round, "requests once more") { [self] record in
        guard late.wants(record.partition, record.offset) else { return }
        spill { [self] () throws(SpillError) in try late.add(facts.request(record)) }
      }
    }
    try late.join { (fact: AuditFact) in put(fact) }
    spilled += late.bytesOnDisk
    if let failure { throw failure }
  }

  /// Whether a request is in the audited range. Kafka searches the range by time, but the embedded broker does not.
  private func isAudited(_ record: RecordView) -> Bool {
    let range = settings.published
    let isAfter = range.to.map { record.timestamp >= $0 } ?? false
    if let begun = audited[record.partition] {
      guard begun.offsets.upperBound == .max else { return false }
      if isAfter {
        audited[record.partition]?.offsets = begun.offsets.lowerBound..<record.offset
      } else {
        audited[record.partition]?.since = min(begun.since, record.timestamp)
      }
      return !isAfter
    }
    guard record.timestamp >= range.from ?? .min else { return false }
    guard isAfter || record.timestamp >= toldSince else {
      findings.untold += 1
      return false
    }
    audited[record.partition] = AuditRules.Requests(offsets: record.offset..<(isAfter ? record.offset : .max), since: record.timestamp)
    return !isAfter
  }

  private func put(_ outcome: JournalJoin.Outcome) {
    switch outcome {
    case .fact(let fact): put(fact)
    case .late(let note): spill { () throws(SpillError) in try late.add(note) }
    }
  }

  /// Stores a fact. A statement about a device goes to the judge of devices.
  private func put(_ fact: AuditFact) {
    spill { () throws(SpillError) in
      if fact.outcome?.isAboutDevice == true {
        try byDevice.add(fact, hash: fact.device)
      } else {
        try byRequest.add(fact, hash: fact.id.high ^ fact.id.low)
      }
    }
  }

  private func put(_ fact: ScheduleFact) {
    spill { () throws(SpillError) in try schedules.add(fact) }
  }

  /// Keeps a fact until it is judged. The first failure ends the audit.
  private func spill(_ add: () throws(SpillError) -> Void) {
    guard failure == nil else { return }
    do throws(SpillError) { try add() } catch { failure = error }
  }

  private func isOfJournal(_ record: RecordView) -> Bool {
    while isJournal.count <= record.partitionIndex { isJournal.append(nil) }
    if let known = isJournal[record.partitionIndex] { return known }
    let answer = record.topic == rules.topics.journal
    isJournal[record.partitionIndex] = answer
    return answer
  }

  // MARK: Judging

  /// Judges all facts, one part at a time.
  ///
  /// - Parameters:
  ///   - onLost: called with the first record of each request without an outcome.
  ///   - onWaiting: called for each request in a mailbox, once for each device.
  func judge(
    _ onProgress: (ReadingProgress) -> Void, onLost: ((AuditFact) -> Void)? = nil, onWaiting: ((AuditFact) -> Void)? = nil
  ) throws(SpillError) {
    var said = SteadyClock.milliseconds()
    var progress = ReadingProgress(what: "judging requests", read: 0, total: Int64(byRequest.parts + schedules.parts + byDevice.parts))
    func step() {
      progress.read += 1
      guard SteadyClock.milliseconds() - said >= 1_000 else { return }
      said = SteadyClock.milliseconds()
      onProgress(progress)
    }
    var requestJudge = RequestJudge(rules: auditRules, onLost: onLost)
    var fates: [RecordPlace: ScheduleFact.Fate] = [:]
    requestJudge.onFiring = { fates[$0.source] = $1 }
    requestJudge.onEnd = { [self] in put($0) }
    for part in 0..<byRequest.parts {
      var facts = try byRequest.take(part)
      requestJudge.judge(&facts, &findings) { fact in spill { () throws(SpillError) in try byDevice.add(fact, hash: fact.device) } }
      try schedules.settle(part: part, fates)
      fates.removeAll(keepingCapacity: true)
      step()
    }
    if let failure { throw failure }
    spilled += byRequest.bytesOnDisk + byDevice.bytesOnDisk + schedules.bytesOnDisk
    progress.what = "judging schedules"
    let occurrenceJudge = OccurrenceJudge(rules: auditRules)
    for part in 0..<schedules.parts {
      var facts = try schedules.take(part)
      occurrenceJudge.judge(&facts, &findings)
      step()
    }
    progress.what = "judging devices"
    let deviceJudge = DeviceJudge(rules: auditRules, onWaiting: onWaiting)
    for part in 0..<byDevice.parts {
      var facts = try byDevice.take(part)
      deviceJudge.judge(&facts, &findings)
      step()
    }
  }

  // MARK: The records of a violation

  /// Reads the records of a violation.
  func timeline(of violation: Violation, _ reader: TopicReader, _ admin: Admin) async throws(KafkaError) -> Explanation {
    let topics = rules.topics
    var places: [(partition: TopicPartition, offset: Int64)] = []
    for place in violation.places {
      let topic =
        switch place.topic {
        case .requests: topics.requests
        case .journal: topics.journal
        case .events: topics.events
        case .deadLetters: topics.deadLetters
        }
      places.append((TopicPartition(topic, place.partition), place.offset))
    }
    let (timeline, rules) = (Gathered(Timeline(violation.id)), rules)
    func take(_ record: RecordView) {
      switch record.topic {
      case topics.requests: timeline.value.add(PublishedRequest(record, rules))
      case topics.journal: timeline.value.add(journal: record, rules)
      case topics.events:
        guard let event = try? Event(headers: record.texts, value: record.value ?? .nothing) else { return }
        timeline.value.add(
          event, topic: topics.events, partition: record.partition, offset: record.offset, timestamp: record.timestamp)
      default:
        if let letter = DeadLetter(headers: record.texts) { timeline.value.add(TimelineStep(letter, record)) }
      }
    }
    let entries = places.filter { $0.partition.topic == topics.journal }
    try await reader.read(at: places.filter { $0.partition.topic != topics.journal }, "violations", take)
    // The request may be missing in these records, but they name its position.
    let sources = try await admin.places(of: timeline.value.unreadSources(in: topics.requests), in: topics.requests)
    try await reader.read(at: sources, "violations", take)
    // The journal identifies requests by their position.
    try await reader.read(at: entries, "violations", take)
    return timeline.value.explanation(now: auditRules.now)
  }
}

extension AuditRun: ReadingPace {
  func ended(_ partition: TopicPartition) {
    if partition.topic == rules.topics.journal {
      partitions[partition.partition]?.endJournal()
    } else {
      partitions[partition.partition]?.endRequests()
    }
  }

  func waits(_ partition: TopicPartition) -> Bool {
    (partition.topic == rules.topics.journal
      ? partitions[partition.partition]?.journalWaits : partitions[partition.partition]?.requestsWait) ?? false
  }
}
