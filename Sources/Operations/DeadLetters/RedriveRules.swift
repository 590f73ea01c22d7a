import Notifications
import Worker

/// Why a letter is not written to the requests again.
public enum RedriveRefusal: Error, Sendable, Equatable {
  /// It was redriven or discarded before.
  case handled(LetterStanding)
  /// No worker survived it: it goes alone, and when somebody says so.
  case endsWorkers
  /// It was a registration, or a record of some other topic.
  case ofTopic(String)
  /// It would be rejected again: reason, field, rule.
  case breaksRule(String, field: String, rule: String)
  /// The edits would make another request of it.
  case otherRequest(String)
  /// Its origin is valid, and stays.
  case keepsOrigin
  /// The workers would reject it for the origin that it would be given.
  case placeIsNoOrigin(PlaceFault)
  /// With its origin it has more bytes than Kafka takes.
  case tooLarge(bytes: Int)
  /// It has no room in the dead letters, and its record is not at its source any more.
  case gone
}

/// Why the first place of a letter cannot be the origin of a record that is written now.
public enum PlaceFault: Sendable, Equatable {
  /// The requests have fewer partitions by now.
  case noPartition
  /// The requests were deleted and made again since: the place is another record's, or nobody's yet.
  case topicMadeAgain
  /// It lies more than five minutes ahead of now.
  case inFuture
}

/// A partition of the requests at the moment when a redriving begins.
struct RequestsLog: Sendable {
  /// What it holds; what is written lies at the end, or behind it.
  var offsets: Range<Int64>
  /// The time of the oldest record, in milliseconds since 1970; nil where there is none, or where it is not known.
  var since: Int64?

  /// What is wrong with a place in this partition as the origin of a record that is written at `now`.
  func fault(_ place: SourcePosition, now: Int64) -> PlaceFault? {
    if place.offset >= offsets.upperBound { return .topicMadeAgain }
    if let since, place.offset >= offsets.lowerBound, since - place.timestamp > Origin.clockTolerance { return .topicMadeAgain }
    let written = SourcePosition(partition: place.partition, offset: offsets.upperBound, timestamp: now)
    return Origin.brokenRule(of: place, for: written) == nil ? nil : .inFuture
  }
}

/// A record as it is written to the requests again.
struct RequestToRedrive: Sendable {
  var record: StoredRecord
  /// The record's own partition; nil lets its key decide.
  var partition: Int32?
  /// The first place, in ``partition``; nil for what becomes a request of its own.
  var origin: SourceCoordinates?
  /// Its apns-id, given or derived; nil where it is derived from where it will lie.
  var id: NotificationID?
  /// Whether it may not be shown any more.
  var isExpired: Bool
  /// What says whether it is superseded; nil without a collapse id.
  var collapse: CollapseKey?
}

/// Says of each letter whether and how it is written again. A value.
struct RedriveRules: Sendable {
  let rules: RequestRules
  let edits: RequestEdits
  /// Whether what would be rejected again goes all the same.
  let isUnchecked: Bool
  /// Whether one that ended workers goes.
  let isForced: Bool
  /// The partitions of the requests.
  let logs: [Int32: RequestsLog]
  /// Milliseconds since 1970.
  let now: Int64
  /// What a record of the requests may have at most, in bytes.
  var maximumBytes = RedriveRules.standardBytes

  /// What brokers take by default, less what a batch needs around a record; see `Producer`.
  static let standardBytes = 1_048_000
  /// What an origin takes at most, but for an odd name of a cluster.
  private static let originBytes = 700

  /// Whether a letter may go at all, as far as its own record tells.
  func check(_ letter: LetterFacts) throws(RedriveRefusal) {
    guard letter.letter.source.topic == rules.topics.requests else { throw .ofTopic(letter.letter.source.topic) }
    if letter.letter.tellsOfEndedWorkers, !isForced { throw .endsWorkers }
  }

  /// The record that is written for a letter.
  ///
  /// - Parameter record: the letter's, where it is complete, else that of its source.
  func request(_ letter: LetterFacts, _ record: StoredRecord) throws(RedriveRefusal) -> RequestToRedrive {
    var record = record
    record.removeLetterHeaders()
    let before = envelope(record, letter)
    edits.apply(to: &record)
    let after = envelope(record, letter)
    if !edits.isNew {
      if before.id != after.id { throw .otherRequest(RequestHeader.id.name.description) }
      if before.target != after.target { throw .otherRequest(RequestHeader.target.name.description) }
      if before.hasOrigin, !after.hasOrigin { throw .keepsOrigin }
    }
    let source = letter.letter.source
    let position = edits.isNew ? SourcePosition(partition: 0, offset: 0, timestamp: now) : source.position
    var request = RequestToRedrive(record: record, id: after.id, isExpired: false)
    let refusal: RedriveRefusal? = record.withRequest(topic: rules.topics.requests, position, cluster: rules.cluster) { record in
      switch RequestView.read(record, limits: rules.limits) {
      case .accepted(let view):
        request.isExpired = rules.end(of: view) <= now
        if !view.envelope.collapseID.isEmpty { request.collapse = CollapseKey(view, view.envelope.collapseID) }
        return nil
      case .rejected(let rejection, _):
        return .breaksRule(rejection.reason.rawValue, field: rejection.field.description, rule: rejection.rule)
      }
    }
    if let refusal, !isUnchecked { throw refusal }
    request.record.headers.removeAll { RequestHeader.named($0.key) == .origin }
    if edits.isNew {
      if before.target != after.target { request.record.key = after.target }
      if after.isDerivedID { request.id = nil }
    } else {
      guard let log = logs[source.position.partition] else { throw .placeIsNoOrigin(.noPartition) }
      if let fault = log.fault(after.first.position, now: now) { throw .placeIsNoOrigin(fault) }
      request.origin = after.first
    }
    if before.target == after.target, logs[source.position.partition] != nil { request.partition = source.position.partition }
    let bytes = request.record.byteCount + Self.originBytes
    if bytes > maximumBytes { throw .tooLarge(bytes: bytes) }
    return request
  }

  /// What a record's headers say of the request.
  private struct Envelope {
    var id: NotificationID
    var isDerivedID: Bool
    var target: [UInt8]?
    /// It has an origin that counts.
    var hasOrigin: Bool
    var first: SourceCoordinates
  }

  private func envelope(_ record: StoredRecord, _ letter: LetterFacts) -> Envelope {
    let source = letter.letter.source
    return record.withRequest(topic: source.topic, source.position, cluster: rules.cluster) { record in
      let envelope = RequestEnvelope(record)
      return Envelope(
        id: envelope.id, isDerivedID: envelope.isDerivedID, target: envelope.target.isEmpty ? nil : Array(envelope.target),
        hasOrigin: envelope.origin != nil, first: envelope.origin?.place ?? source)
    }
  }
}
