import Kafka
import Notifications
import Worker

/// The journal's statements about the requests, and about those that replaced them.
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

  /// Finds the newer revisions that replaced waiting notifications, even if a killed worker emitted no event.
  func readReplacements() async throws(KafkaError) {
    let waiting = timelines.values.filter(\.mayBeReplaced)
    guard let since = waiting.compactMap(\.published).min() else { return }
    let ids = Set(waiting.map(\.id))
    let stretches = try await admin.stretches(of: rules.topics.journal, TimeRange(from: since - Self.clocks))
    var found: [(former: NotificationID, position: SourcePosition, step: TimelineStep)] = []
    try await reader.read(stretches, "the journal") { record in
      guard let value = record.value, let journal = try? JournalRecord(headers: record.texts, value: value) else { return }
      try? journal.forEachEntry(in: value, partition: record.partition) { entry in
        func take(_ judgement: JournalJudgement, _ device: String?) {
          guard judgement.verdict == .queued, let former = judgement.other?.id, ids.contains(former) else { return }
          var step = TimelineStep(TimelineStep.replaced, record, device: device)
          (step.time, step.worker, step.outcome) = (max(journal.judgedAt, entry.timestamp), journal.worker, .collapsed)
          found.append((former, SourcePosition(partition: record.partition, offset: entry.offset, timestamp: entry.timestamp), step))
        }
        switch entry.content {
        case .request(let judgement): take(judgement, nil)
        case .page(let page): for device in page.devices { take(device.judgement, device.token.text) }
        case .extensions, .unreadable: break
        }
      }
    }
    let places = try await admin.places(of: found.map(\.position), in: rules.topics.requests)
    try await reader.read(at: places, "requests") { [self] record in
      let request = PublishedRequest(record, rules)
      for (former, position, step) in found where position == request.source.position {
        var step = step
        step.device = step.device ?? request.device
        step.details = [TimelineStep.Detail("by", request.id.description)]
        timelines[former]?.add(step)
      }
    }
  }
}
