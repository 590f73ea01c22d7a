public import JSON

/// The header `carillon-origin` of a record that was published again, borrowed from it.
///
/// Any producer can write one, and it has no signature. So it counts only for a record that the cluster itself may have written: see
/// ``counting(for:)``.
public struct Origin {
  /// Why a record was published again.
  public enum Purpose: UInt8, Sendable {
    /// To repeat what was applied before, or will be. It never has an effect of its own.
    case replay
    /// As new work: a mended dead letter, or a request that a device missed.
    case redrive
  }

  /// The longest topic name that Kafka accepts, in bytes.
  public static var topicBytes: Int { 249 }

  /// The name of the first cluster, as it stands between the quotes.
  public let cluster: UnsafeRawBufferPointer
  /// The first topic.
  public let topic: UnsafeRawBufferPointer
  /// The first partition, offset and timestamp, which give the revision.
  public let position: SourcePosition
  /// Why the record was published again.
  public let purpose: Purpose
  /// Whether a device was found to have neither outcome nor mailbox entry of it.
  ///
  /// Only a redrive can have this.
  public let isUnfinished: Bool

}

extension Origin {
  /// Reads the JSON of a header; `nil` if a member is missing or wrong.
  ///
  /// It is `{"cluster", "topic", "partition", "offset", "timestamp", "why": "replay" | "redrive"}`, perhaps with `"unfinished": true`.
  public init?(_ header: UnsafeRawBufferPointer) {
    guard header.count <= 2_048, let origin = try? Self.read(header) else { return nil }
    self = origin
  }

  /// How much later than its record an origin may be, in milliseconds: clocks differ.
  public static var clockTolerance: Int64 { 300_000 }

  /// Reads the origin of a record; `nil` if the record has none.
  ///
  /// - Throws: the rule that an origin breaks if it does not count for this record.
  static func counting(for record: RequestRecord) throws(Rejection) -> Origin? {
    guard let header = record.headers[.origin] else { return nil }
    guard let origin = Origin(header) else {
      throw rejection("An origin is a JSON object with cluster, topic, partition, offset, timestamp, and why: replay or redrive.")
    }
    guard record.cluster.isEmpty || origin.cluster.equals(record.cluster) else {
      throw rejection("An origin names the cluster that reads it: publish what comes from another cluster without one.")
    }
    guard origin.topic.equals(record.topic) else {
      throw rejection("An origin names the topic that its record lies in: publish what comes from another topic without one.")
    }
    if let rule = brokenRule(of: origin.position, for: record.position) { throw rejection(rule) }
    return origin
  }

  /// Returns the rule that an origin breaks; `nil` if it counts for `position`.
  ///
  /// Both positions are of the same topic.
  public static func brokenRule(of first: SourcePosition, for position: SourcePosition) -> String? {
    if first.partition != position.partition { return "An origin names the partition that its record lies in." }
    if first.offset >= position.offset { return "An origin names an offset below its record's." }
    // Neither is negative, so the difference is a number.
    if first.timestamp - position.timestamp > clockTolerance { return "An origin's time is at most five minutes after its record's." }
    return nil
  }

  private static func rejection(_ rule: String) -> Rejection { Rejection(.badRequestParams, field: "carillon-origin", rule: rule) }

  /// Writes an origin as the value of the header.
  ///
  /// - Parameters:
  ///   - cluster: the name of the first cluster: letters, digits, full stops, hyphens and underscores.
  ///   - source: the first position of the record.
  ///   - isUnfinished: see ``isUnfinished``.
  public static func write(
    cluster: String, _ source: SourceCoordinates, why purpose: Purpose, isUnfinished: Bool = false, to writer: inout JSONWriter
  ) {
    writer.openObject()
    writer.member("cluster", cluster)
    writer.member("topic", source.topic)
    writer.member("partition", Int(source.position.partition))
    writer.member("offset", source.position.offset)
    writer.member("timestamp", source.position.timestamp)
    writer.member("why", "\(purpose)")
    if isUnfinished { writer.member("unfinished", true) }
    writer.closeObject()
  }

  private static func read(_ header: UnsafeRawBufferPointer) throws(JSONError) -> Origin? {
    var scanner = JSONScanner(header)
    var cluster: UnsafeRawBufferPointer?
    var topic: UnsafeRawBufferPointer?
    var partition: Int64?
    var offset: Int64?
    var timestamp: Int64?
    var purpose: Purpose?
    var isUnfinished = false
    try scanner.openObject()
    while let (key, value) = try scanner.nextMember() {
      if scanner.matches(key, "cluster") {
        cluster = value.kind == .string ? scanner.source(value) : nil
      } else if scanner.matches(key, "topic") {
        topic = scanner.unescapedBytes(value)
      } else if scanner.matches(key, "partition") {
        partition = scanner.integer(value)
      } else if scanner.matches(key, "offset") {
        offset = scanner.integer(value)
      } else if scanner.matches(key, "timestamp") {
        timestamp = scanner.integer(value)
      } else if scanner.matches(key, "why") {
        purpose = scanner.matches(value, "replay") ? .replay : scanner.matches(value, "redrive") ? .redrive : nil
      } else if scanner.matches(key, "unfinished") {
        isUnfinished = value.kind == .true
      }
    }
    try scanner.finish()
    guard let cluster, cluster.count > 2, cluster.count <= 257, let topic, isTopicName(topic), let partition,
      let partition = Int32(exactly: partition), partition >= 0, let offset, offset >= 0, let timestamp, timestamp >= 0, let purpose
    else { return nil }
    return Origin(
      cluster: UnsafeRawBufferPointer(rebasing: cluster[1..<cluster.count - 1]), topic: topic,
      position: SourcePosition(partition: partition, offset: offset, timestamp: timestamp), purpose: purpose,
      isUnfinished: isUnfinished && purpose == .redrive)
  }

  /// Whether Kafka accepts a topic name.
  private static func isTopicName(_ name: UnsafeRawBufferPointer) -> Bool {
    !name.isEmpty && name.count <= topicBytes && name.allSatisfy(ApplicationTopic.isNameByte)
  }
}
