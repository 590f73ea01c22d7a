/// The headers of a record that states what was done with a letter.
///
/// It lies in `notifications.dead-letters` and has no value.
public enum LetterStateHeader: String, Sendable, CaseIterable {
  /// The action: `redriven` or `discarded`.
  case state = "carillon-dead-letter-state"
  /// The letter's partition and offset in `notifications.dead-letters`, such as `3:1742`.
  ///
  /// The partition is that of this record, too.
  case letter = "carillon-dead-letter-letter"
  /// The person who did it.
  case by = "carillon-dead-letter-by"
  /// The time, by RFC 3339.
  case at = "carillon-dead-letter-at"
  /// The redriven record's partition and offset in `notifications.requests`, if Kafka has reported it.
  case request = "carillon-dead-letter-request"
  /// The apns-id of the request, given or derived, if it is known.
  case id = "carillon-dead-letter-apns-id"
  /// The person's note.
  case note = "carillon-dead-letter-note"

  /// The prefix of all headers that a letter or its state adds.
  public static var prefix: String { "carillon-dead-letter-" }
}

/// The state of a dead letter: a record behind the letter in its partition.
///
/// A state has no reason, and every letter has one. So a producer cannot make a letter look like a state by its request's headers. A letter
/// has all the states that were ever written of it.
public struct LetterState: Sendable, Equatable {
  /// What a person did with a letter.
  public enum Kind: String, Sendable, CaseIterable {
    /// The request was published again.
    case redriven
    /// Nothing more is to be done with the letter.
    case discarded
  }

  /// The longest text of a person, in bytes.
  public static var textBytes: Int { 1_024 }

  /// What the person did.
  public var kind: Kind
  /// The letter.
  public var letter: RecordPlace
  /// The person who did it: `user@host`.
  public var by: String
  /// The time, in milliseconds since 1970.
  public var at: Int64
  /// The position of the redriven record in the requests, if Kafka has reported it.
  public var request: RecordPlace?
  /// The apns-id of the request, or its new one; nil if it is unknown.
  public var id: NotificationID?
  /// The person's note.
  public var note: String?

  /// Creates a state from its parts.
  public init(
    _ kind: Kind, of letter: RecordPlace, by: String, at: Int64, request: RecordPlace? = nil, id: NotificationID? = nil,
    note: String? = nil
  ) {
    (self.kind, self.letter, self.by, self.at) = (kind, letter, by, at)
    (self.request, self.id, self.note) = (request, id, note)
  }

  /// Reads a state from a record's headers; `nil` unless it names a letter.
  public init?(headers: [(name: String, value: String)]) {
    func value(_ header: LetterStateHeader) -> String? { headers.last { $0.name == header.rawValue }?.value }
    guard !headers.contains(where: { $0.name == DeadLetterHeader.reason.rawValue }), let kind = value(.state).flatMap(Kind.init),
      let letter = value(.letter).flatMap(RecordPlace.init)
    else { return nil }
    self.init(
      kind, of: letter, by: value(.by) ?? "", at: value(.at).flatMap { Timestamp.parse($0) } ?? 0,
      request: value(.request).flatMap(RecordPlace.init), id: value(.id).flatMap { NotificationID($0) }, note: value(.note))
  }

  /// The headers of the state's record. Texts that are too long are cut.
  public var headers: [(name: String, value: String)] {
    let fields: [(LetterStateHeader, String?)] = [
      (.state, kind.rawValue), (.letter, letter.description), (.by, by.prefix(utf8: Self.textBytes)), (.at, Timestamp.text(at)),
      (.request, request?.description), (.id, id?.description), (.note, note?.prefix(utf8: Self.textBytes)),
    ]
    return fields.compactMap { header, value in value.map { (header.rawValue, $0) } }
  }
}
