import EventLoop
import Kafka
import Notifications
import Store
import Worker

/// One audit: reads the topics, stores the facts, and checks them.
final class AuditRun {
  private(set) var findings: AuditFindings
  private(set) var spilled = 0
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
  private var join: JournalJoin
  private var byRequest: Spill<AuditFact>
  private var byDevice: Spill<AuditFact>
  private var schedules: Spill<ScheduleFact>
  private var limits = AuditedLimits()
  private let applications: [TopicStretch]
  /// The first error while facts were stored.
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
    auditRules = AuditRules(settings: settings, now: now, written: WallClock.milliseconds())
    findings = AuditFindings(limit: settings.limit)
    // Nearly each request has one entry of the journal.
    let count = (requests + requests + events + deadLetters).reduce(0) { $0 + Int64($1.offsets.count) }
    join = JournalJoin(expecting: count, in: settings.spillFolder)
    byRequest = Spill(expecting: count, in: settings.spillFolder)
    byDevice = Spill(expecting: count, in: settings.spillFolder)
    schedules = Spill(expecting: count, in: settings.spillFolder)
    for stretches in [events, journal] { try await findOldest(stretches, now, admin) }
  }

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
    try await reader.read(requests, "requests") { [self] record in
      let counted = isLimited ? rules.withRecord(record) { limits.count($0) } : []
      guard isAudited(record) else { return }
      findings.records += 1
      var fact = facts.request(record) { put($0) }
      fact.flags.formUnion(counted)
      spill { () throws(SpillError) in try join.add(fact) }
    }
    for stretch in requests {
      // Later requests are not audited.
      guard let offsets = audited[stretch.partition.partition]?.offsets else { continue }
      audited[stretch.partition.partition]?.offsets = offsets.clamped(to: stretch.offsets)
    }
    auditRules.requests = audited
    auditRules.beginsAtBeginning = requests.allSatisfy { stretch in
      stretch.offsets.isEmpty ? stretch.offsets.upperBound == 0 : audited[stretch.partition.partition]?.offsets.lowerBound == 0
    }
    try await readJournal(reader)
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
  }

  /// Reads the journal, and joins it with the requests.
  private func readJournal(_ reader: TopicReader) async throws {
    var newer: StoreError?
    /// The offsets that workers could not read.
    var unreadable: [(partition: Int32, offsets: Range<Int64>, incarnation: UInt16)] = []
    try await reader.read(journal, "the journal") { [self] record in
      findings.journal += 1
      guard let value = record.value, let journal = try? JournalRecord(headers: record.texts, value: value) else {
        // What a newer program says would count as missing, and its requests as lost.
        let version = JournalRecord.newerVersion(record.texts)
        newer = version.map { StoreError.newer(.journal, $0, at: "\(record.topic), partition \(record.partition)") } ?? newer
        findings.unreadable += 1
        return
      }
      let facts = AuditFact(journal, at: RecordPlace(partition: record.partition, offset: record.offset))
      auditRules.incarnations[record.partition] = max(auditRules.incarnations[record.partition] ?? 0, facts.incarnation)
      let offsets = audited[record.partition]?.offsets ?? 0..<0
      let isReadable: Void? = try? journal.forEachEntry(in: value, partition: record.partition) { entry in
        if case .unreadable(let count) = entry.content {
          unreadable.append((record.partition, entry.offset..<entry.offset + count, facts.incarnation))
        } else if offsets.contains(entry.offset) {
          facts.forEach(of: entry) { fact in spill { () throws(SpillError) in try join.add(fact) } }
        }
      }
      if isReadable == nil { findings.unreadable += 1 }
    }
    if let newer { throw newer }
    for stretch in unreadable where stretch.incarnation >= auditRules.incarnations[stretch.partition] ?? 0 {
      auditRules.unreadable[stretch.partition, default: []].append(stretch.offsets)
    }
    if failure == nil { try join.join(auditRules) { put($0) } }
    spilled += join.bytesOnDisk
    join = JournalJoin(expecting: 0, in: settings.spillFolder)
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

  /// Stores a fact. A statement about a device goes to `DeviceAudit`.
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
    spill { () throws(SpillError) in try schedules.add(fact, hash: fact.schedule) }
  }

  /// Keeps a fact until it is checked. The first failure ends the audit.
  private func spill(_ add: () throws(SpillError) -> Void) {
    guard failure == nil else { return }
    do throws(SpillError) { try add() } catch { failure = error }
  }

  // MARK: Checking

  /// Checks all facts, one part at a time.
  ///
  /// - Parameters:
  ///   - onLost: called with the first record of each request without an outcome.
  ///   - onWaiting: called for each request in a mailbox, once for each device.
  func check(
    _ onProgress: (ReadingProgress) -> Void, onLost: @escaping (AuditFact) -> Void = { _ in },
    onWaiting: @escaping (AuditFact) -> Void = { _ in }
  ) throws(SpillError) {
    var said = SteadyClock.milliseconds()
    var progress = ReadingProgress(what: "", read: 0, total: Int64(byRequest.parts + schedules.parts + byDevice.parts))
    func checkAll<Fact>(
      _ what: String, _ spill: inout Spill<Fact>, _ body: (inout [Fact], inout AuditFindings) -> Void
    ) throws(SpillError) {
      progress.what = "checking \(what)"
      for part in 0..<spill.parts {
        var facts = try spill.take(part)
        body(&facts, &findings)
        progress.read += 1
        guard SteadyClock.milliseconds() - said >= 1_000 else { continue }
        said = SteadyClock.milliseconds()
        onProgress(progress)
      }
    }
    let requestAudit = RequestAudit(rules: auditRules, onLost: onLost, onSchedule: { [self] in put($0) }) { [self] fact in
      spill { () throws(SpillError) in try byDevice.add(fact, hash: fact.device) }
    }
    try checkAll("requests", &byRequest, requestAudit.check)
    if let failure { throw failure }
    spilled += byRequest.bytesOnDisk + byDevice.bytesOnDisk + schedules.bytesOnDisk
    try checkAll("schedules", &schedules, OccurrenceAudit(rules: auditRules).check)
    try checkAll("devices", &byDevice, DeviceAudit(rules: auditRules, onWaiting: onWaiting).check)
  }

  // MARK: The records of a violation

  /// Reads the records of a violation.
  func timeline(of violation: Violation, _ reader: TopicReader, _ admin: Admin) async throws(KafkaError) -> Explanation {
    let (timeline, rules, topics) = (Gathered(Timeline(violation.id)), rules, rules.topics)
    let places = violation.places.map { (partition: TopicPartition(topics.prefix + $0.topic.rawValue, $0.partition), offset: $0.offset) }
    func take(_ record: RecordView) { timeline.value.add(record, rules) }
    try await reader.read(at: places.filter { $0.partition.topic != topics.journal }, "violations", take)
    // The request may be missing in these records, but they name its position.
    let sources = try await admin.places(of: timeline.value.unreadSources(in: topics.requests), in: topics.requests)
    try await reader.read(at: sources, "violations", take)
    // The journal identifies requests by their position.
    try await reader.read(at: places.filter { $0.partition.topic == topics.journal }, "violations", take)
    return timeline.value.explanation(now: auditRules.now)
  }
}
