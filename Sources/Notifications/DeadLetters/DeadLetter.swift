/// The headers that a record has in `notifications.dead-letters` beside its own, which stay as they were.
public enum DeadLetterHeader: String, Sendable, CaseIterable {
  /// Why it is here: an APNs reason, `Poison` for a record that its workers did not survive or could not process, or `Unreadable` for records
  /// that could not be read, of which the letter has nothing but the place.
  case reason = "carillon-dead-letter-reason"
  /// The header or the member that is wrong, for a record that breaks a rule.
  case field = "carillon-dead-letter-field"
  /// The rule that it breaks, as a sentence.
  case rule = "carillon-dead-letter-rule"
  /// What went wrong, for a record that could not be processed.
  case error = "carillon-dead-letter-error"
  /// How often it was tried.
  case tries = "carillon-dead-letter-tries"
  /// The topic that it was read from.
  case topic = "carillon-dead-letter-topic"
  /// The partition that it was read from.
  case partition = "carillon-dead-letter-partition"
  /// Its offset there.
  case offset = "carillon-dead-letter-offset"
  /// Its timestamp there, in milliseconds since 1970; not for records that could not be read.
  case timestamp = "carillon-dead-letter-timestamp"
  /// The last offset of several records that could not be read.
  case last = "carillon-dead-letter-last"

  /// The name, with a terminating zero behind its characters, as librdkafka takes it.
  public var name: StaticString {
    switch self {
    case .reason: "carillon-dead-letter-reason"
    case .field: "carillon-dead-letter-field"
    case .rule: "carillon-dead-letter-rule"
    case .error: "carillon-dead-letter-error"
    case .tries: "carillon-dead-letter-tries"
    case .topic: "carillon-dead-letter-topic"
    case .partition: "carillon-dead-letter-partition"
    case .offset: "carillon-dead-letter-offset"
    case .timestamp: "carillon-dead-letter-timestamp"
    case .last: "carillon-dead-letter-last"
    }
  }
}

/// Why a record lies in `notifications.dead-letters`, and where it came from.
public struct DeadLetter: Sendable, Equatable {
  /// The reason of records that could not be processed.
  public static var poison: String { "Poison" }

  /// The reason of records that could not be read where they lie: not decompressed, or with a wrong checksum.
  public static var unreadable: String { "Unreadable" }

  /// The error of a record over which its workers' processes ended.
  public static var workersEnded: String { "the processes of its workers ended while they worked on it" }

  /// What the error of a record says at its end that had no room in the dead letters: its value, or more of it, is missing there.
  public static var liesElsewhere: String { "the record does not fit into the dead letters as a whole: read it where it lies" }

  /// Whether all of the record is in the letter; else only its source has it.
  public var isComplete: Bool { last == nil && error?.hasSuffix(Self.liesElsewhere) != true }

  /// Whether it is there since no worker has survived it.
  public var tellsOfEndedWorkers: Bool { reason == Self.poison && error?.hasPrefix(Self.workersEnded) == true }

  /// An APNs reason, or `Poison`.
  public var reason: String
  /// The header or the member that is wrong.
  public var field: String?
  /// The rule that it breaks.
  public var rule: String?
  /// What went wrong.
  public var error: String?
  /// How often it was tried.
  public var tries: Int
  /// Where it was read from.
  public var source: SourceCoordinates
  /// The last offset of records that could not be read, the first of which the source has; nil for any other letter.
  public var last: Int64?

  /// The letter of a record that breaks a rule.
  public init(_ rejection: Rejection, tries: Int = 1, source: SourceCoordinates) {
    (reason, field, rule) = (rejection.reason.rawValue, rejection.field.description, rejection.rule)
    (self.tries, self.source) = (tries, source)
  }

  /// The letter of a record that could not be processed.
  public init(poison error: String, tries: Int, source: SourceCoordinates) {
    reason = Self.poison
    (self.error, self.tries, self.source) = (error, tries, source)
  }

  /// The letter of records that could not be read.
  public init(unreadable error: String, _ offsets: Range<Int64>, of topic: String, partition: Int32) {
    reason = Self.unreadable
    (self.error, tries) = (error, 1)
    source = SourceCoordinates(topic: topic, partition: partition, offset: offsets.lowerBound, timestamp: 0)
    last = offsets.upperBound - 1
  }

  /// Reads the letter out of a record's headers; `nil` when the reason or the source is missing.
  public init?(headers: [(name: String, value: String)]) {
    func value(_ header: DeadLetterHeader) -> String? { headers.last { $0.name == header.rawValue }?.value }
    guard let reason = value(.reason), let topic = value(.topic), let partition = value(.partition).flatMap({ Int32($0) }),
      let offset = value(.offset).flatMap({ Int64($0) })
    else { return nil }
    self.reason = reason
    (field, rule, error) = (value(.field), value(.rule), value(.error))
    tries = value(.tries).flatMap { Int($0) } ?? 1
    source = SourceCoordinates(
      topic: topic, partition: partition, offset: offset, timestamp: value(.timestamp).flatMap { Int64($0) } ?? 0)
    last = value(.last).flatMap { Int64($0) }
  }

  /// Calls `body` with each header to add to the record; the values are valid during the call.
  public func forEachHeader(_ body: (DeadLetterHeader, UnsafeRawBufferPointer) throws -> Void) rethrows {
    for (header, value) in [
      (.reason, reason), (.field, field), (.rule, rule), (.error, error), (.tries, String(tries)), (.topic, source.topic),
      (.partition, String(source.position.partition)), (.offset, String(source.position.offset)),
      (.timestamp, last == nil ? String(source.position.timestamp) : nil), (.last, last.map { String($0) }),
    ] as [(DeadLetterHeader, String?)] {
      guard var value else { continue }
      try value.withUTF8 { try body(header, UnsafeRawBufferPointer($0)) }
    }
  }

  /// Calls `body` with each header to add to a record that breaks a rule; names and values as ``forEachHeader(_:)`` gives them.
  public static func forEachHeader(
    _ rejection: Rejection, tries: Int, topic: String, position: SourcePosition,
    _ body: (StaticString, UnsafeRawBufferPointer) throws -> Void
  ) rethrows {
    let letter = DeadLetter(rejection, tries: tries, source: SourceCoordinates(topic: topic, position: position))
    try letter.forEachHeader { header, value in try body(header.name, value) }
  }
}
