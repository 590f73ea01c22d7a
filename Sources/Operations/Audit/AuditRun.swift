import EventLoop
import Kafka
import Notifications
import Worker

/// One audit: what is read, where it is put, how it is judged. Loop-confined.
final class AuditRun {
  private(set) var findings: AuditFindings
  private(set) var spilled: Int64 = 0
  private let settings: AuditSettings
  private let rules: RequestRules
  private var auditRules: AuditRules
  /// From the first request of the time to the first one after it, by partition.
  private var audited: [Int32: AuditRules.Requests] = [:]
  /// The first records of events partitions whose beginning is gone.
  private let oldestEvents: [(partition: TopicPartition, offset: Int64)]
  /// Of requests from before then events may be gone.
  private var toldSince = Int64.min
  private let requests: [TopicStretch]
  private let events: [TopicStretch]
  private let deadLetters: [TopicStretch]
  private var byRequest: Spill
  private var byDevice: Spill
  /// What went wrong while records were taken.
  private var failure: SpillError?

  /// Notes where everything lies: the requests first, so that what is told of them lies within what is read.
  init(_ rules: RequestRules, _ settings: AuditSettings, _ admin: Admin) async throws(KafkaError) {
    self.rules = rules
    self.settings = settings
    let now = WallClock.milliseconds()
    let range = settings.published
    requests = try await admin.stretches(of: rules.topics.requests, range)
    // What happens to a request may happen long after it.
    let after = TimeRange(from: range.from.map { $0 - settings.clockSlack })
    events = try await admin.stretches(of: rules.topics.events, after)
    let kept = try await admin.ends(of: events.map(\.partition))
    // Of a partition that is empty by now only the retention says how old its last event may have been.
    if kept.values.contains(where: { $0.isEmpty && $0.lowerBound > 0 }),
      let retention = try? await admin.settings(ofTopic: rules.topics.events)["retention.ms"].flatMap({ Int64($0) }), retention >= 0
    {
      toldSince = now - min(retention, now)
    }
    oldestEvents = events.filter {
      !$0.offsets.isEmpty && $0.offsets.lowerBound > 0 && $0.offsets.lowerBound == kept[$0.partition]?.lowerBound
    }
    .map { ($0.partition, $0.offsets.lowerBound) }
    deadLetters = try await admin.stretches(of: rules.topics.deadLetters, after)
    auditRules = AuditRules(
      now: now, grace: settings.grace, clockSlack: settings.clockSlack, takeover: settings.takeover, forbidsPending: settings.forbidsPending
    )
    findings = AuditFindings(limit: settings.limit)
    let count = (requests + events + deadLetters).reduce(0) { $0 + Int64($1.offsets.count) }
    byRequest = Spill(expecting: count, in: settings.spillFolder)
    byDevice = Spill(expecting: count, in: settings.spillFolder)
  }

  // MARK: Reading

  func read(_ reader: TopicReader) async throws {
    let facts = FactReader(rules)
    try await reader.read(at: oldestEvents, "events") { [self] record in
      toldSince = max(toldSince, Timestamp.bounded(record.timestamp) + settings.clockSlack)
    }
    try await reader.read(requests, "requests") { [self] record in
      guard isAudited(record) else { return }
      findings.records += 1
      put(facts.request(record))
    }
    for stretch in requests {
      // What is published meanwhile does not belong to it.
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
      findings.deadLetters += 1
      if let fact = facts.deadLetter(record) { put(fact) }
    }
    if let failure { throw failure }
  }

  /// Whether a request lies between the first one of the time and the first one after it: as Kafka finds them, and the embedded broker
  /// does not.
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
    audited[record.partition] = AuditRules.Requests(record.offset..<(isAfter ? record.offset : .max), since: record.timestamp)
    return !isAfter
  }

  private func put(_ fact: AuditFact) {
    guard failure == nil else { return }
    do throws(SpillError) {
      if fact.kind != .registered, fact.kind != .unregisteredDevice { try byRequest.add(fact, hash: fact.id.high ^ fact.id.low) }
      if fact.device != 0, fact.kind.isJudgedByDevice { try byDevice.add(fact, hash: fact.device) }
    } catch {
      failure = error
    }
  }

  // MARK: Judging

  /// Judges what was read, part by part.
  func judge(_ onProgress: (ReadingProgress) -> Void) throws(SpillError) {
    var said = SteadyClock.milliseconds()
    var progress = ReadingProgress(what: "judging requests", read: 0, total: Int64(byRequest.parts + byDevice.parts))
    func step() {
      progress.read += 1
      guard SteadyClock.milliseconds() - said >= 1_000 else { return }
      said = SteadyClock.milliseconds()
      onProgress(progress)
    }
    let requestJudge = RequestJudge(rules: auditRules)
    for part in 0..<byRequest.parts {
      var facts = try byRequest.take(part)
      requestJudge.judge(&facts, &findings) { fact in
        guard failure == nil else { return }
        do throws(SpillError) { try byDevice.add(fact, hash: fact.device) } catch { failure = error }
      }
      step()
    }
    if let failure { throw failure }
    spilled = byRequest.bytesOnDisk + byDevice.bytesOnDisk
    progress.what = "judging devices"
    let deviceJudge = DeviceJudge(rules: auditRules)
    for part in 0..<byDevice.parts {
      var facts = try byDevice.take(part)
      deviceJudge.judge(&facts, &findings)
      step()
    }
  }

  // MARK: What is told of a violation

  /// Reads the records that have to do with it.
  func timeline(of violation: Violation, _ reader: TopicReader, _ admin: Admin) async throws(KafkaError) -> Explanation {
    let topics = rules.topics
    var places: [(partition: TopicPartition, offset: Int64)] = []
    for place in violation.places {
      let topic =
        switch place.topic {
        case .requests: topics.requests
        case .events: topics.events
        case .deadLetters: topics.deadLetters
        }
      places.append((TopicPartition(topic, place.partition), place.offset))
    }
    let collected = Collected(Timeline(violation.id))
    let rules = rules
    try await reader.read(at: places, "violations") { record in collected.take(record, rules) }
    // Its request may not be among them, but is where they say.
    let sources = try await admin.places(of: collected.timeline.unreadSources(in: topics.requests), in: topics.requests)
    try await reader.read(at: sources, "violations") { record in collected.take(record, rules) }
    return collected.timeline.explanation(now: auditRules.now)
  }

  private final class Collected {
    var timeline: Timeline

    init(_ timeline: Timeline) { self.timeline = timeline }

    func take(_ record: RecordView, _ rules: RequestRules) {
      switch record.topic {
      case rules.topics.requests: timeline.add(PublishedRequest(record, rules))
      case rules.topics.events:
        guard let event = try? Event(headers: record.texts, value: record.value ?? .nothing) else { return }
        timeline.add(event, topic: rules.topics.events, partition: record.partition, offset: record.offset, timestamp: record.timestamp)
      default:
        if let letter = DeadLetter(headers: record.texts) { timeline.add(Step(letter, record)) }
      }
    }
  }
}
