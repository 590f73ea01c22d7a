import Notifications
import Worker

/// Why a letter is not written to the requests again.
package enum RedriveRefusal: Error, Sendable, Equatable {
  /// It ended workers. It needs an order of its own, with force.
  case endsWorkers
  /// It was a registration, or a record of another topic.
  case ofTopic(String)
  /// It would be rejected again: reason, field, rule.
  case breaksRule(String, field: String, rule: String)
  /// The edits would make it another request.
  case otherRequest(String)
  /// Its valid origin must stay.
  case keepsOrigin
  /// The workers would reject the origin that it would get.
  case placeIsNoOrigin(PlaceFault)
  /// With its origin it is larger than Kafka's limit.
  case tooLarge(bytes: Int)
  /// It did not fit into the dead letters, and its source does not have it any more.
  case gone
}

/// Why the first place of a letter cannot be an origin now, in words.
package enum PlaceFault: String, Sendable {
  /// The requests have fewer partitions now.
  case noPartition = "the requests have fewer partitions now"
  /// The requests were made again since: the place belongs to another record or to none.
  case topicMadeAgain = "the requests topic was deleted and made again since"
  /// It lies more than five minutes ahead of now.
  case inFuture = "its time lies more than five minutes ahead"
}

/// A partition of the requests when redriving begins.
struct RequestsLog: Sendable {
  /// Its offsets. Redriven records come at or after the end.
  var offsets: Range<Int64>
  /// The time of the oldest record, in milliseconds since 1970; nil if there is none, or if it is unknown.
  var since: Int64?

  /// Checks a place in this partition as the origin of a record that is written at `now`.
  func fault(_ place: SourcePosition, now: Int64) -> PlaceFault? {
    if place.offset >= offsets.upperBound { return .topicMadeAgain }
    if let since, place.offset >= offsets.lowerBound, since - place.timestamp > Origin.clockTolerance { return .topicMadeAgain }
    let written = SourcePosition(partition: place.partition, offset: offsets.upperBound, timestamp: now)
    return Origin.brokenRule(of: place, for: written) == nil ? nil : .inFuture
  }
}

/// A record to write to the requests.
struct RequestToRedrive: Sendable {
  var record: StoredRecord
  /// The record's own partition; nil lets its key decide.
  var partition: Int32?
  /// The first place, in ``partition``; nil for a new request.
  var origin: SourceCoordinates?
  /// Its apns-id, given or derived; nil if it derives from its future place.
  var id: NotificationID?
  /// Whether it has expired.
  var isExpired: Bool
}

/// Decides whether and how a letter is written again. A value.
struct RedriveRules: Sendable {
  let rules: RequestRules
  let edits: RequestEdits
  /// Whether a letter that ended workers is written.
  let isForced: Bool
  /// The partitions of the requests.
  let logs: [Int32: RequestsLog]
  /// Milliseconds since 1970.
  let now: Int64
  /// The most bytes of a record of the requests.
  var maximumBytes = RedriveRules.standardBytes

  /// The brokers' default minus the bytes around a record in its batch; see `Producer`.
  static let standardBytes = 1_048_000
  /// The most bytes of an origin, unless the cluster's name is very long.
  private static let originBytes = 700

  /// Checks whether a letter may be redriven, by its own record.
  func check(_ letter: LetterFacts) throws(RedriveRefusal) {
    guard letter.letter.source.topic == rules.topics.requests else { throw .ofTopic(letter.letter.source.topic) }
    if letter.letter.tellsOfEndedWorkers, !isForced { throw .endsWorkers }
  }

  /// Makes the record for a letter.
  ///
  /// - Parameter record: the letter's record if it is complete, else its source's.
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
        return nil
      case .rejected(let rejection, _):
        return .breaksRule(rejection.reason.rawValue, field: rejection.field.description, rule: rejection.rule)
      }
    }
    if let refusal { throw refusal }
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

  /// The parts of a request that its headers contain.
  private struct Envelope {
    var id: NotificationID
    var isDerivedID: Bool
    var target: [UInt8]?
    /// Whether it has a valid origin.
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
