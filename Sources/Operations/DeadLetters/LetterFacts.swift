import Kafka
public import Notifications

/// What a dead letter says of itself, without its record.
public struct LetterFacts: Sendable, Equatable {
  /// Where the letter lies in the dead letters.
  public var place: RecordPlace
  /// When it was written, in milliseconds since 1970.
  public var time: Int64
  /// Why it is there.
  public var letter: DeadLetter
  /// Where the request was first: what its own origin says, else where it was read from.
  public var first: SourceCoordinates
  /// Whether it has an origin that counts: it came again already.
  public var hasOrigin: Bool
  /// Its apns-id, given or derived. Of a letter without its headers it is only known at its source.
  public var id: NotificationID
  /// Whether the id was derived, since there is none or none that is valid.
  public var isDerivedID: Bool
  /// The application, as far as the headers tell it.
  public var application: Name?
  /// The `target` header, else the key.
  public var target: Name?

  /// What is the same for letters of one request that came for the same reason.
  var recurrence: UInt64 {
    StableHash.hash("\(first.topic)\n\(first.position.partition)\n\(first.position.offset)\n\(letter.reason)")
  }
}

extension LetterFacts {
  /// Reads a record of the dead letters; nil when it is none.
  init?(_ record: RecordView, _ rules: RequestRules) {
    guard let letter = DeadLetter(headers: record.texts) else { return nil }
    self = rules.withRecord(record, from: letter.source) { request in
      let envelope = RequestEnvelope(request)
      return LetterFacts(
        place: RecordPlace(partition: record.partition, offset: record.offset), time: Timestamp.bounded(record.timestamp), letter: letter,
        first: envelope.origin?.place ?? letter.source, hasOrigin: envelope.origin != nil, id: envelope.id,
        isDerivedID: envelope.isDerivedID, application: envelope.application.isEmpty ? nil : Name(envelope.application),
        target: (request.headers.target ?? record.key).map { Name($0) })
    }
  }
}
