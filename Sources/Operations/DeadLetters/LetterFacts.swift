import Kafka
package import Notifications

/// The headers of a dead letter as values, without its record.
package struct LetterFacts: Sendable, Equatable {
  /// The letter's place in the dead letters.
  package var place: RecordPlace
  /// When it was written, in milliseconds since 1970.
  package var time: Int64
  /// The reason of the letter.
  package var letter: DeadLetter
  /// The first place of the request: from its own origin, else where it was read.
  package var first: SourceCoordinates
  /// Whether it has a valid origin, so it was published again before.
  package var hasOrigin: Bool
  /// Its apns-id, given or derived. If the letter lacks the headers, only the source has the id.
  package var id: NotificationID
  /// Whether the id was derived, because there is no valid one.
  package var isDerivedID: Bool
  /// The application, if the headers name it.
  package var application: Name?
  /// The `target` header, else the key.
  package var target: Name?
}

extension LetterFacts {
  /// Reads a record of the dead letters; nil if it is not a letter.
  init?(_ record: RecordView, _ rules: RequestRules) {
    guard let letter = DeadLetter(headers: record.texts) else { return nil }
    self = rules.withRecord(record, from: letter.source) { request in
      let envelope = RequestEnvelope(request)
      return LetterFacts(
        place: RecordPlace(partition: record.partition, offset: record.offset), time: Timestamp.bounded(record.timestamp), letter: letter,
        first: envelope.origin?.place ?? letter.source, hasOrigin: envelope.origin != nil, id: envelope.id,
        isDerivedID: envelope.isDerivedID, application: envelope.application.isEmpty ? nil : Name(envelope.application),
        target: (request.headers[.target] ?? record.key).map { Name($0) })
    }
  }
}
