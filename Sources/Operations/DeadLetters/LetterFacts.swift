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
  /// The name of the cluster of that first place, where its origin says it.
  public var firstCluster: String?
  /// Whether it has an origin: it came again already.
  public var hasOrigin: Bool
  /// Its apns-id, given or derived. Of a letter without its headers it is only known at its source.
  public var id: NotificationID
  /// Whether the id was derived, since there is none or none that is valid.
  public var isDerivedID: Bool
  /// The application, as far as the headers tell it.
  public var application: String?
  /// The `target` header, else the key.
  public var target: String?

  /// What is the same for letters of one request that came for the same reason.
  var recurrence: UInt64 {
    StableHash.hash("\(first.topic)\n\(first.position.partition)\n\(first.position.offset)\n\(letter.reason)")
  }
}

extension LetterFacts {
  /// Reads a record of the dead letters; nil when it is none.
  init?(_ record: RecordView) {
    let headers = record.texts
    guard let letter = DeadLetter(headers: headers) else { return nil }
    self.init(letter, RecordPlace(partition: record.partition, offset: record.offset), record)
  }

  private init(_ letter: DeadLetter, _ place: RecordPlace, _ record: RecordView) {
    var topic = letter.source.topic
    let (envelope, target): (Envelope, String?) = topic.withUTF8 { topic in
      let request = RequestRecord(record, topic: UnsafeRawBufferPointer(topic), position: letter.source.position)
      let target = request.headers.target ?? record.key
      return (Envelope(RequestEnvelope(request), letter.source), target?.characters)
    }
    self.init(
      place: place, time: Timestamp.bounded(record.timestamp), letter: letter, first: envelope.first, firstCluster: envelope.cluster,
      hasOrigin: envelope.hasOrigin, id: envelope.id, isDerivedID: envelope.isDerivedID, application: envelope.application, target: target)
  }

  /// What the request's headers say, copied.
  private struct Envelope {
    let first: SourceCoordinates
    let cluster: String?
    let hasOrigin: Bool
    let id: NotificationID
    let isDerivedID: Bool
    let application: String?

    init(_ envelope: RequestEnvelope, _ source: SourceCoordinates) {
      hasOrigin = envelope.origin != nil
      cluster = envelope.origin?.clusterName
      first = envelope.origin?.place ?? source
      (id, isDerivedID) = (envelope.id, envelope.isDerivedID)
      application = envelope.application.isEmpty ? nil : envelope.application.characters
    }
  }
}
