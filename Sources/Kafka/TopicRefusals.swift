/// Topics whose records the brokers refuse: a value that is told of each report.
///
/// A record that is refused at once is sent again, and no record in flight ever becomes old. So the age of the oldest one says nothing of a
/// topic that takes none.
public struct TopicRefusals: Sendable {
  private struct Refusal {
    let since: Int64
    var last: Int64
    var code: KafkaError.Code
  }

  private var topics: [String: Refusal] = [:]

  /// A topic that takes no record.
  public struct Lasting: Sendable, Hashable {
    /// The topic.
    public let topic: String
    /// Why its last record was refused.
    public let code: KafkaError.Code
  }

  /// How long every record is refused before the topic counts, and how long a topic counts after its last refusal, in milliseconds. A record
  /// that times out is refused once a minute.
  private static let (lastingMilliseconds, rememberedMilliseconds): (Int64, Int64) = (5_000, 90_000)

  /// Of a producer that has no reports yet.
  public init() {}

  /// Whether no topic has refused its last record: then a record that was taken need not be told.
  var isEmpty: Bool { topics.isEmpty }

  /// A record was refused. One that is too large itself, was thrown away here, or is for a partition that the client does not know says nothing
  /// of its topic.
  mutating func refused(_ topic: String, _ code: KafkaError.Code, at now: Int64) {
    guard ![.messageTooLarge, .purged, .purgedInFlight, .unconfirmed, .closed, .unknownPartition].contains(code) else { return }
    if var known = topics[topic], now - known.last <= Self.rememberedMilliseconds {
      (known.last, known.code) = (now, code)
      topics[topic] = known
    } else {
      topics[topic] = Refusal(since: now, last: now, code: code)
    }
  }

  /// A record was taken.
  mutating func took(_ topic: String) { topics[topic] = nil }

  /// The topics that have taken no record for seconds, though records were given to them.
  mutating func lasting(at now: Int64) -> [Lasting] {
    // While there is any topic, each record that was taken is looked up.
    topics = topics.filter { now - $0.value.last <= Self.rememberedMilliseconds }
    return topics.filter { $0.value.last - $0.value.since >= Self.lastingMilliseconds }
      .map { Lasting(topic: $0.key, code: $0.value.code) }.sorted { $0.topic < $1.topic }
  }
}
