import EventLoop
import Kafka
import Notifications
import Worker

/// A journal record's statements about some requests, as steps of a timeline. A value.
struct JournalSteps {
  /// A step and its request.
  struct Judged {
    let step: TimelineStep
    let id: NotificationID
    let request: SourcePosition
    let identifier: Name?
    /// Nil if it is not a verdict.
    let revision: Revision?
  }

  private(set) var steps: [Judged] = []
  /// The requests that the record names.
  private(set) var requests: Set<SourcePosition> = []

  /// Makes it without steps.
  private init() {}

  /// Reads a record's statements about these requests; none if it is not a journal record.
  ///
  /// An entry with another timestamp than the request at its offset is of a former topic.
  init(_ record: RecordView, of requests: [PublishedRequest]) {
    guard let value = record.value, let journal = try? JournalRecord(headers: record.texts, value: value) else {
      self.init()
      return
    }
    self.init(journal, value, SourceCoordinates(record), of: requests)
  }

  /// Reads the statements of a record at this place.
  init(_ journal: JournalRecord, _ value: UnsafeRawBufferPointer, _ place: SourceCoordinates, of requests: [PublishedRequest]) {
    let requests = requests.filter { $0.source.position.partition == place.position.partition }
    guard !requests.isEmpty else { return }
    try? journal.forEachEntry(in: value, partition: place.position.partition) { entry in
      for request in requests {
        let position = request.source.position
        if case .unreadable(let count) = entry.content {
          // This program can read it, but the worker could not.
          guard position.offset >= entry.offset, position.offset - entry.offset < count else { continue }
          self.requests.insert(position)
          let step = TimelineStep(
            name: Outcome.unreadable.name, time: entry.timestamp, topic: place.topic, partition: place.position.partition,
            offset: place.position.offset, worker: journal.worker)
          steps.append(Judged(step: step, id: request.id, request: position, identifier: nil, revision: nil))
          continue
        }
        guard entry.offset == position.offset, Timestamp.bounded(entry.timestamp) == Timestamp.bounded(position.timestamp) else { continue }
        self.requests.insert(position)
        func step(_ name: String, _ device: String?, _ details: [TimelineStep.Detail]) -> TimelineStep {
          TimelineStep(
            name: name, time: max(journal.judgedAt, entry.timestamp), topic: place.topic, partition: place.position.partition,
            offset: place.position.offset, device: device, worker: journal.worker, details: details)
        }
        func add(_ judgement: JournalJudgement, _ device: String?) {
          // An event tells the others.
          guard judgement.verdict.event == nil else { return }
          let identifier = request.identifier ?? Name(request.id.description)
          let isIgnored = judgement.verdict == .replayed && request.firing != nil && request.origin == nil
          var step = step(isIgnored ? TimelineStep.ignored : judgement.verdict.name, device, Self.details(judgement, of: request))
          step.outcome = judgement.verdict
          steps.append(Judged(step: step, id: request.id, request: position, identifier: identifier, revision: judgement.revision))
        }
        switch entry.content {
        case .request(let judgement): add(judgement, judgement.verdict == .replayed ? nil : request.device)
        case .page(let page): for device in page.devices { add(device.judgement, device.token.text) }
        case .extensions(let passed):
          let step = step(TimelineStep.extensions, nil, passed.map(TimelineStep.Detail.init))
          steps.append(Judged(step: step, id: request.id, request: position, identifier: nil, revision: nil))
        case .unreadable: break
        }
      }
    }
  }

  /// Only the statements about one of the requests.
  func about(_ request: SourcePosition) -> JournalSteps {
    var steps = self
    steps.steps.removeAll { $0.request != request }
    steps.requests.formIntersection([request])
    return steps
  }

  private static func details(_ judgement: JournalJudgement, of request: PublishedRequest) -> [TimelineStep.Detail] {
    var details: [TimelineStep.Detail] = []
    if judgement.verdict == .wrongUser { details.append(TimelineStep.Detail("reason", "the device is not the person's")) }
    // The same as the record's own unless it was raised, or is that of an earlier record.
    if judgement.revision.timestamp != UInt64(clamping: request.source.position.timestamp) || request.origin != nil {
      details.append(TimelineStep.Detail("revision", judgement.revision.description))
    }
    if let other = judgement.other { details.append(TimelineStep.Detail("superseded", other.id.description)) }
    return details
  }
}

extension TimelineStep.Detail {
  /// The detail of a service extension.
  fileprivate init(_ passed: JournalEntry.PassedExtension) {
    self.init(passed.name, "\(passed.state.word), \(ReadableText.duration(milliseconds: Int64(passed.milliseconds)))")
  }
}

extension PublishedRequest {
  /// The device's token, for a `device:` target.
  var device: String? { target.token?.text }
}

extension Timeline {
  /// Adds a journal record's statements about the requests that were added before.
  mutating func add(journal record: RecordView, _ rules: RequestRules) { add(JournalSteps(record, of: records)) }
}
