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
  }

  private(set) var steps: [Judged] = []
  /// The requests that the record names.
  private(set) var requests: Set<SourcePosition> = []

  /// Makes it without steps.
  private init() {}

  /// Reads a record's statements about these requests; none if it is not a journal record.
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
      for request in requests where entry.isAbout(request.source.position) {
        let position = request.source.position
        self.requests.insert(position)
        func add(_ name: String, _ device: String? = nil, _ details: [TimelineStep.Detail] = [], _ outcome: Outcome? = nil) {
          let step = TimelineStep(
            name: name, time: max(journal.judgedAt, entry.timestamp), topic: place.topic, partition: place.position.partition,
            offset: place.position.offset, device: device, worker: journal.worker, details: details, outcome: outcome)
          steps.append(Judged(step: step, id: request.id, request: position))
        }
        func judge(_ judgement: JournalJudgement, _ device: String?) {
          // An event tells the others.
          guard judgement.verdict.event == nil else { return }
          let isIgnored = judgement.verdict == .replayed && request.firing != nil && request.origin == nil
          let name = isIgnored ? TimelineStep.ignored : judgement.verdict.name
          add(name, device, Self.details(judgement, of: request), judgement.verdict)
        }
        switch entry.content {
        case .request(let judgement): judge(judgement, judgement.verdict == .replayed ? nil : request.device)
        case .page(let page): for device in page.devices { judge(device.judgement, device.token.text) }
        case .extensions(let passed): add(TimelineStep.extensions, nil, passed.map(TimelineStep.Detail.init))
        // This program can read it, but the worker could not.
        case .unreadable: add(Outcome.unreadable.name)
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

extension JournalEntry {
  /// Whether it speaks of the request at this position. An entry with another timestamp is of a former topic.
  fileprivate func isAbout(_ position: SourcePosition) -> Bool {
    if case .unreadable(let count) = content { return position.offset >= offset && position.offset - offset < count }
    return offset == position.offset && Timestamp.bounded(timestamp) == Timestamp.bounded(position.timestamp)
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
