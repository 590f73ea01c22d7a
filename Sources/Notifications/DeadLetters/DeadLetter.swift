/// The headers that a dead letter has beside those of its record.
public enum DeadLetterHeader: String, Sendable, CaseIterable {
  /// The reason: a word of APNs, `Poison` or `Unreadable`.
  ///
  /// `Poison` marks a record that workers did not survive or could not process. `Unreadable` marks records that could not be read. Such a
  /// letter has only their position.
  case reason = "carillon-dead-letter-reason"
  /// The wrong header or member, if the record breaks a rule.
  case field = "carillon-dead-letter-field"
  /// The broken rule, as a sentence.
  case rule = "carillon-dead-letter-rule"
  /// The error, if the record could not be processed.
  case error = "carillon-dead-letter-error"
  /// The number of tries.
  case tries = "carillon-dead-letter-tries"
  /// The topic of the record.
  case topic = "carillon-dead-letter-topic"
  /// The partition of the record.
  case partition = "carillon-dead-letter-partition"
  /// The offset of the record.
  case offset = "carillon-dead-letter-offset"
  /// The timestamp of the record, in milliseconds since 1970; absent for unreadable records.
  case timestamp = "carillon-dead-letter-timestamp"
  /// The last offset of several unreadable records.
  case last = "carillon-dead-letter-last"
}

/// Why a record became a dead letter, and where it came from.
public struct DeadLetter: Sendable, Equatable {
  /// The reason of records that could not be processed.
  public static var poison: String { "Poison" }

  /// The reason of unreadable records: with a wrong checksum, or not decompressed.
  public static var unreadable: String { "Unreadable" }

  /// The error of a record whose workers' processes ended.
  public static var workersEnded: String { "the processes of its workers ended while they worked on it" }

  /// The end of the error of a record too large for the dead letters.
  ///
  /// The letter lacks the record's value, or more of it.
  public static var liesElsewhere: String { "the record does not fit into the dead letters as a whole: read it where it lies" }

  /// Whether the letter has all of the record. Else only its source has it.
  public var isComplete: Bool { last == nil && error?.hasSuffix(Self.liesElsewhere) != true }

  /// Whether the record is a dead letter because no worker survived it.
  public var tellsOfEndedWorkers: Bool { reason == Self.poison && error?.hasPrefix(Self.workersEnded) == true }

  /// A word of APNs, `Poison` or `Unreadable`.
  public var reason: String
  /// The wrong header or member.
  public var field: String?
  /// The broken rule.
  public var rule: String?
  /// The error.
  public var error: String?
  /// The number of tries.
  public var tries: Int
  /// The position of the record.
  public var source: SourceCoordinates
  /// The last offset of unreadable records, whose first is in `source`; else nil.
  public var last: Int64?

  /// Creates the letter of a record that breaks a rule.
  public init(_ rejection: Rejection, tries: Int = 1, source: SourceCoordinates) {
    (reason, field, rule) = (rejection.reason.rawValue, rejection.field.description, rejection.rule)
    (self.tries, self.source) = (tries, source)
  }

  /// Creates the letter of a record that could not be processed.
  public init(poison error: String, tries: Int, source: SourceCoordinates) {
    reason = Self.poison
    (self.error, self.tries, self.source) = (error, tries, source)
  }

  /// Creates the letter of unreadable records.
  public init(unreadable error: String, _ offsets: Range<Int64>, of topic: String, partition: Int32) {
    reason = Self.unreadable
    (self.error, tries) = (error, 1)
    source = SourceCoordinates(topic: topic, partition: partition, offset: offsets.lowerBound, timestamp: 0)
    last = offsets.upperBound - 1
  }

  /// Reads a letter from a record's headers; `nil` without a reason or a source.
  public init?(headers: [(name: String, value: String)]) {
    // A producer may have written such headers, too. The cluster's own come last, and begin with the reason.
    let begin = headers.lastIndex { $0.name == DeadLetterHeader.reason.rawValue } ?? 0
    func value(_ header: DeadLetterHeader) -> String? { headers[begin...].last { $0.name == header.rawValue }?.value }
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

  /// The headers to add to the record.
  public var headers: [(name: String, value: String)] {
    let fields: [(DeadLetterHeader, String?)] = [
      (.reason, reason), (.field, field), (.rule, rule), (.error, error), (.tries, String(tries)), (.topic, source.topic),
      (.partition, String(source.position.partition)), (.offset, String(source.position.offset)),
      (.timestamp, last == nil ? String(source.position.timestamp) : nil), (.last, last.map { String($0) }),
    ]
    return fields.compactMap { header, value in value.map { (header.rawValue, $0) } }
  }
}
