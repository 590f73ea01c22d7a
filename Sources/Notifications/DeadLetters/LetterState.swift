/// The headers of a record in `notifications.dead-letters` that says what was done with a letter there. It has no value.
public enum LetterStateHeader: String, Sendable, CaseIterable {
  /// What was done: `redriven` or `discarded`.
  case state = "carillon-dead-letter-state"
  /// The letter, by partition and offset in `notifications.dead-letters`: `3:1742`. The partition is the record's own.
  case letter = "carillon-dead-letter-letter"
  /// Who did it.
  case by = "carillon-dead-letter-by"
  /// When, by RFC 3339.
  case at = "carillon-dead-letter-at"
  /// The record that was redriven, by partition and offset in `notifications.requests`, where Kafka has said where it lies.
  case request = "carillon-dead-letter-request"
  /// The apns-id of the request, given or derived, where it is known.
  case id = "carillon-dead-letter-apns-id"
  /// What the person wrote about it.
  case note = "carillon-dead-letter-note"

  /// What the names of all headers begin with that a letter or its state has beside the record's own.
  public static var prefix: String { "carillon-dead-letter-" }
}

/// What was done with a dead letter: a record of its own in `notifications.dead-letters`, in the partition of the letter and behind it.
///
/// It is told from a letter by having no reason, which every letter has: what a producer writes into the headers of a request that
/// becomes a letter makes no state of it. A letter has all the states that were ever written of it.
public struct LetterState: Sendable, Equatable {
  /// What can be done with a letter.
  public enum Kind: String, Sendable, CaseIterable {
    /// It was written to the requests again.
    case redriven
    /// Nothing is to be done with it any more.
    case discarded
  }

  /// The longest text of a person that is written, in bytes.
  public static var textBytes: Int { 1_024 }

  /// What was done.
  public var kind: Kind
  /// The letter.
  public var letter: RecordPlace
  /// Who did it: `user@host`.
  public var by: String
  /// When, in milliseconds since 1970.
  public var at: Int64
  /// Where the redriven record lies in the requests, as far as Kafka has told.
  public var request: RecordPlace?
  /// The apns-id of the request, where it is known: of one that became another the new one.
  public var id: NotificationID?
  /// What the person wrote about it.
  public var note: String?

  /// A state of its parts.
  public init(
    _ kind: Kind, of letter: RecordPlace, by: String, at: Int64, request: RecordPlace? = nil, id: NotificationID? = nil,
    note: String? = nil
  ) {
    (self.kind, self.letter, self.by, self.at) = (kind, letter, by, at)
    (self.request, self.id, self.note) = (request, id, note)
  }

  /// Reads the state out of a record's headers; `nil` for a letter, and for what does not say which letter it is about.
  public init?(headers: [(name: String, value: String)]) {
    func value(_ header: LetterStateHeader) -> String? { headers.last { $0.name == header.rawValue }?.value }
    guard !headers.contains(where: { $0.name == DeadLetterHeader.reason.rawValue }), let kind = value(.state).flatMap(Kind.init),
      let letter = value(.letter).flatMap(RecordPlace.init)
    else { return nil }
    self.init(
      kind, of: letter, by: value(.by) ?? "", at: value(.at).flatMap { Timestamp.parse($0) } ?? 0,
      request: value(.request).flatMap(RecordPlace.init), id: value(.id).flatMap { NotificationID($0) }, note: value(.note))
  }

  /// The headers of its record; texts that are too long are cut.
  public var headers: [(name: String, value: String)] {
    let fields: [(LetterStateHeader, String?)] = [
      (.state, kind.rawValue), (.letter, letter.description), (.by, Self.cut(by)), (.at, Timestamp.text(at)),
      (.request, request?.description), (.id, id?.description), (.note, note.map(Self.cut)),
    ]
    return fields.compactMap { header, value in value.map { (header.rawValue, $0) } }
  }

  private static func cut(_ text: String) -> String {
    guard text.utf8.count > textBytes else { return text }
    var bytes = 0
    return String(
      text.unicodeScalars.prefix {
        bytes += $0.utf8.count
        return bytes <= textBytes
      })
  }
}
