/// The topics whose records the brokers refuse, by the delivery reports. A value.
///
/// An immediately refused record is sent again, so no record in flight becomes old. So the age of the oldest one says nothing of such a
/// topic.
public struct TopicRefusals: Sendable {
  private struct Refusal {
    let since: Int64
    var last: Int64
    var code: KafkaError.Code
  }

  private var topics: [String: Refusal] = [:]

  /// A topic that refuses every record.
  public struct Lasting: Sendable, Hashable {
    /// The topic.
    public let topic: String
    /// Why its last record was refused.
    public let code: KafkaError.Code
  }

  /// How long every record must be refused before the topic counts, and how long it counts after its last refusal, in milliseconds. A
  /// record that times out is refused once a minute.
  private static let (lastingMilliseconds, rememberedMilliseconds): (Int64, Int64) = (5_000, 90_000)

  /// Whether no topic has refused its last record. Then successes need no report.
  var isEmpty: Bool { topics.isEmpty }

  /// Notes a refused record. It says nothing of its topic if the record is too large, was dropped here, or has an unknown partition.
  mutating func refused(_ topic: String, _ code: KafkaError.Code, at now: Int64) {
    guard ![.messageTooLarge, .purged, .purgedInFlight, .unconfirmed, .closed, .unknownPartition].contains(code) else { return }
    if var known = topics[topic], now - known.last <= Self.rememberedMilliseconds {
      (known.last, known.code) = (now, code)
      topics[topic] = known
    } else {
      topics[topic] = Refusal(since: now, last: now, code: code)
    }
  }

  /// Notes an accepted record.
  mutating func took(_ topic: String) { topics[topic] = nil }

  /// The topics that have refused all records of the last seconds.
  mutating func lasting(at now: Int64) -> [Lasting] {
    // While any topic counts, each success is looked up.
    topics = topics.filter { now - $0.value.last <= Self.rememberedMilliseconds }
    return topics.filter { $0.value.last - $0.value.since >= Self.lastingMilliseconds }
      .map { Lasting(topic: $0.key, code: $0.value.code) }.sorted { $0.topic < $1.topic }
  }
}
