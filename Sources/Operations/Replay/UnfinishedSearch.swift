import Kafka
import Notifications
import Store
import Worker

/// More requests wait in mailboxes than fit into memory.
package struct TooManyWaiting: Error, CustomStringConvertible, Sendable {
  /// The error, and what to do.
  package var description: String {
    "more than \(UnfinishedSearch.maximum) requests of the range wait for their devices: take a shorter range, or some of the partitions, one after the other"
  }
}

/// Finds the unfinished requests of a range.
///
/// One of their devices has neither an outcome nor an entry in its mailbox.
///
/// The topics are judged as by an audit, so superseded and expired requests do not count. For the others, which must be in a mailbox, it
/// reads the tokens once more and asks Redis.
final class UnfinishedSearch: ReadingPace {
  /// A request that must be in the mailbox of a device.
  private struct Waiting {
    /// The hash of the device's token.
    let device: UInt64
    let revision: Revision
  }

  /// The most of these that are kept; some 100 bytes each.
  static let maximum = 4_000_000
  /// The most unanswered questions to Redis.
  private static let maximumOpen = 4_096

  private let rules: RequestRules
  private let settings: AuditSettings
  /// The offsets of the replay, by partition.
  private let ranges: [Int32: Range<Int64>]
  private let admin: Admin
  private let reader: TopicReader
  private let mailboxes: Mailboxes
  private var waiting: [RecordPlace: [Waiting]] = [:]
  private var count = 0
  private var open = 0
  private var failure: StoreError?
  private var whenAnswered: CheckedContinuation<Void, Never>?
  /// The devices, by the hashes of their tokens, whose mailboxes lack a request.
  private var missing: [RecordPlace: Set<UInt64>] = [:]
  /// Requests that are older than the remaining events or journal.
  private(set) var untold = 0
  /// Whether to stop early.
  var isStopped: () -> Bool = { false }
  private(set) var found: Set<RecordPlace> = []

  init(
    _ rules: RequestRules, _ settings: AuditSettings, _ plan: ReplayPlan, _ admin: Admin, _ reader: TopicReader, _ shards: Shards
  ) {
    (self.rules, self.settings, self.admin, self.reader) = (rules, settings, admin, reader)
    ranges = Dictionary(plan.partitions.map { ($0.partition, $0.position..<max($0.position, $0.offsets.upperBound)) }) { first, _ in first }
    mailboxes = Mailboxes(shards)
  }

  /// Runs the search.
  ///
  /// - Parameter group: the workers' group. Requests that it has not finished do not count.
  func run(group: String, _ onProgress: @escaping (ReadingProgress) -> Void) async throws {
    let topic = rules.topics.requests
    let finished = try await admin.committed(group: group, of: ranges.keys.map { TopicPartition(topic, $0) })
    let audit = try await AuditRun(rules, settings, admin)
    try await audit.read(reader)
    func take(_ fact: AuditFact, _ keep: (RecordPlace) -> Void) {
      let place = fact.source
      guard ranges[place.partition]?.contains(place.offset) == true,
        place.offset < finished[TopicPartition(topic, place.partition)] ?? 0
      else { return }
      count += 1
      if count <= Self.maximum { keep(place) }
    }
    var lost: Set<RecordPlace> = []
    try audit.check(onProgress, onLost: { fact in take(fact) { lost.insert($0) } }) { [self] fact in
      take(fact) { waiting[$0, default: []].append(Waiting(device: fact.device, revision: fact.order)) }
    }
    untold = audit.findings.untold
    guard count <= Self.maximum else { throw TooManyWaiting() }
    try await askRedis()
    try await forgetFinished(since: audit.events)
    found = lost.union(missing.keys)
  }

  /// Drops requests that have ended since the audit began: their entries were deleted for that.
  private func forgetFinished(since stretches: [TopicStretch]) async throws {
    guard !missing.isEmpty else { return }
    let ends = try await admin.ends(of: stretches.map(\.partition))
    let later = stretches.map { TopicStretch($0.partition, $0.offsets.upperBound, ends[$0.partition]?.upperBound ?? 0) }
    let facts = FactReader(rules)
    try await reader.read(later, "events since", in: nil, until: isStopped) { [self] record in
      guard case .fact(let fact) = facts.event(record), fact.device != 0, fact.flags.contains(.isOfTopic) else { return }
      let place = fact.source
      missing[place]?.remove(fact.device)
      if missing[place]?.isEmpty == true { missing[place] = nil }
    }
  }

  // MARK: The mailboxes

  private func askRedis() async throws {
    let partitions = Set(waiting.keys.map(\.partition))
    guard !partitions.isEmpty else { return }
    let topics = [rules.topics.requests, rules.topics.journal]
    var stretches: [TopicStretch] = []
    for topic in topics {
      let range = TimeRange(from: settings.published.from.map { $0 - ClockTrust.toleratedMilliseconds })
      stretches += try await admin.stretches(of: topic, range).filter { partitions.contains($0.partition.partition) }
    }
    let journal = rules.topics.journal
    // A journal record has thousands of devices, so small batches let the pace stop early enough.
    try await reader.read(stretches, "the devices of those that wait", in: self, batch: 8, until: isStopped) { [self] record in
      if record.topic == journal { takeJournal(record) } else { takeRequest(record) }
    }
    await answers()
    if let failure { throw failure }
  }

  private func takeRequest(_ record: RecordView) {
    let place = RecordPlace(partition: record.partition, offset: record.offset)
    guard let devices = waiting[place] else { return }
    rules.withReading(of: record) { reading in
      guard case .accepted(let view) = reading, let token = view.target.device.flatMap({ DeviceToken($0) }) else { return }
      for device in devices where max(1, token.hash64()) == device.device { ask(token.text, device, place) }
    }
  }

  private func takeJournal(_ record: RecordView) {
    guard let value = record.value, let journal = try? JournalRecord(headers: record.texts, value: value) else { return }
    try? journal.forEachEntry(in: value, partition: record.partition) { entry in
      let place = RecordPlace(partition: record.partition, offset: entry.offset)
      guard case .page(let page) = entry.content, let devices = waiting[place] else { return }
      for told in page.devices {
        let hash = max(1, told.token.hash64())
        for device in devices where device.device == hash { ask(told.token.text, device, place) }
      }
    }
  }

  private func ask(_ token: String, _ device: Waiting, _ place: RecordPlace) {
    guard failure == nil else { return }
    open += 1
    mailboxes.contains(device.revision, of: token) { [self] answer in
      open -= 1
      switch answer {
      case .success(true): break
      case .success(false): missing[place, default: []].insert(device.device)
      case .failure(let error): failure = failure ?? error
      }
      guard open == 0, let waiting = whenAnswered else { return }
      whenAnswered = nil
      waiting.resume()
    }
  }

  private func answers() async {
    guard open > 0 else { return }
    await withCheckedContinuation { continuation in
      // Checked here, since other tasks may run between a check and an await.
      if open == 0 { continuation.resume() } else { whenAnswered = continuation }
    }
  }

  func ended(_ partition: TopicPartition) {}
  func waits(_ partition: TopicPartition) -> Bool { false }
  var isHeld: Bool { open >= Self.maximumOpen }
}
