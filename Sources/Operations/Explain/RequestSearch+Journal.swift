import Kafka
import Notifications
import Worker

/// The journal's statements about the request and its successors.
extension RequestSearch {
  /// How long the journal is read after a request's entry. A lane may have rewound and judged it again.
  private static let judgedAgain: Int64 = 10 * 60_000

  /// Reads the journal on newly found requests, from their publication on.
  func readJournal() async throws(KafkaError) {
    let requests = timelines.values.flatMap(\.records).filter { !journaled.contains($0.source.position) }
    guard let published = requests.map(\.source.position.timestamp).min() else { return }
    journaled.formUnion(requests.map(\.source.position))
    let wanted = Dictionary(grouping: requests) { $0.source.position.partition }
    let stretches = try await admin.stretches(of: rules.topics.journal, TimeRange(from: Timestamp.bounded(published) - Self.clocks))
      .filter { wanted[$0.partition.partition] != nil }
    var left = wanted.mapValues { Set($0.map(\.source.position)) }
    /// How far a partition is read, after all of its requests were found.
    var until: [Int32: Int64] = [:]
    var passed: Set<Int32> = []
    try await reader.read(stretches, "the journal", in: nil, until: { passed.count == wanted.count }) { [self] record in
      let (partition, time) = (record.partition, Timestamp.bounded(record.timestamp))
      let judged = JournalSteps(record, of: wanted[partition] ?? [])
      for id in Set(judged.steps.map(\.id)) { timelines[id]?.add(judged) }
      left[partition]?.subtract(judged.requests)
      if !judged.requests.isEmpty, left[partition]?.isEmpty == true { until[partition] = time + Self.judgedAgain }
      if let end = until[partition], time > end { passed.insert(partition) }
    }
  }

  // MARK: Successors

  /// The journal entry of a request that may have replaced this one.
  private typealias Successor = (position: SourcePosition, device: String?, judgement: JournalJudgement, step: TimelineStep)

  /// Finds newer revisions of waiting notifications. The oldest of them replaced it, even if a killed worker emitted no event.
  func readReplacements() async throws(KafkaError) {
    let waiting = timelines.values.flatMap { timeline in timeline.waiting.map { (id: timeline.id, former: $0) } }
    guard let since = waiting.map(\.former.since).min() else { return }
    var requests = try await readNewer(than: waiting.map(\.former), since: since)
    let successors = try await readSuccessors(of: Set(waiting.map(\.id)), requests, since: since)
    let unread = successors.map(\.position).filter { position in !requests.contains { $0.source.position == position } }
    let places = try await admin.places(of: unread, in: rules.topics.requests)
    try await reader.read(at: places, "requests") { [self] record in requests.append(PublishedRequest(record, rules)) }
    for (id, former) in waiting {
      let newer = successors.compactMap { successor -> (revision: Revision, step: TimelineStep)? in
        guard let request = requests.first(where: { $0.source.position == successor.position }), request.id != id,
          (successor.device ?? request.device) == former.device, former.revision < successor.judgement.revision,
          successor.judgement.other?.id == id || request.identifier == former.identifier
        else { return nil }
        var step = successor.step
        step.device = former.device
        step.details = [TimelineStep.Detail("by", request.id.description)]
        return (successor.judgement.revision, step)
      }
      if let oldest = newer.min(by: { $0.revision < $1.revision }) { timelines[id]?.add(oldest.step) }
    }
  }

  /// Reads later requests of the same identifier in the request's partition, where all requests of a target lie.
  private func readNewer(than waiting: [Timeline.Waiting], since: Int64) async throws(KafkaError) -> [PublishedRequest] {
    let partitions = Set(timelines.values.flatMap(\.records).map(\.source.position.partition))
    let identifiers = Set(waiting.map(\.identifier))
    let stretches = try await admin.stretches(of: rules.topics.requests, TimeRange(from: since - Self.clocks))
      .filter { partitions.contains($0.partition.partition) }
    var newer: [PublishedRequest] = []
    try await reader.read(stretches, "newer requests") { [self] record in
      // A removal may name it in its body.
      let collapse = record.header(.collapseID).map { identifiers.contains(Name($0)) }
      guard collapse ?? (record.header(.operation) != nil) else { return }
      let request = PublishedRequest(record, rules)
      if request.identifier.map(identifiers.contains) == true { newer.append(request) }
    }
    return newer
  }

  /// Reads the journal on these requests, and on any that superseded one of those ids.
  private func readSuccessors(
    of ids: Set<NotificationID>, _ requests: [PublishedRequest], since: Int64
  ) async throws(KafkaError) -> [Successor] {
    let stretches = try await admin.stretches(of: rules.topics.journal, TimeRange(from: since - Self.clocks))
    let known = Set(requests.map(\.source.position))
    var successors: [Successor] = []
    try await reader.read(stretches, "the journal") { [self] record in
      guard let value = record.value, let journal = try? JournalRecord(headers: record.texts, value: value) else { return }
      try? journal.forEachEntry(in: value, partition: record.partition) { entry in
        let position = SourcePosition(partition: record.partition, offset: entry.offset, timestamp: entry.timestamp)
        func take(_ judgement: JournalJudgement, _ device: String?) {
          guard judgement.verdict == .queued, judgement.other.map({ ids.contains($0.id) }) == true || known.contains(position) else {
            return
          }
          let step = TimelineStep(
            name: TimelineStep.replaced, time: max(journal.judgedAt, entry.timestamp), topic: rules.topics.journal,
            partition: record.partition,
            offset: record.offset, worker: journal.worker, outcome: .collapsed)
          successors.append((position, device, judgement, step))
        }
        switch entry.content {
        case .request(let judgement): take(judgement, nil)
        case .page(let page): for device in page.devices { take(device.judgement, device.token.text) }
        case .extensions, .unreadable: break
        }
      }
    }
    return successors
  }
}
