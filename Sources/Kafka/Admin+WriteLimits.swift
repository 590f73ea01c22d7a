/// What brokers ask of those who write to topics: their settings `max.message.bytes` and `min.insync.replicas`.
public struct WriteLimits: Sendable, Hashable {
  /// What brokers take as one batch by default, in bytes: 1 MiB and what a batch has around its records.
  public static let standardBatchBytes = 1_048_588

  /// What brokers take as one batch, in bytes by topic, as far as it is known.
  public var batchBytes: [String: Int]
  /// How many copies must be in step so that a topic can be written, as far as it is known.
  public var minimumInSync: [String: Int]
  /// Why nothing is known of a topic: this client may not ask for its settings.
  public var unknown: [String: KafkaError]

  /// The limits of some topics; all others have the defaults.
  public init(batchBytes: [String: Int] = [:], minimumInSync: [String: Int] = [:], unknown: [String: KafkaError] = [:]) {
    (self.batchBytes, self.minimumInSync, self.unknown) = (batchBytes, minimumInSync, unknown)
  }

  /// What brokers take as one batch of a topic, in bytes; the default where that is not known.
  public func batchBytes(of topic: String) -> Int { batchBytes[topic] ?? Self.standardBatchBytes }

  /// What brokers take as one batch of each of some topics, in bytes.
  public func batchBytes(ofEach topics: [String]) -> Int { topics.map { batchBytes(of: $0) }.min() ?? Self.standardBatchBytes }
}

extension Admin {
  /// Asks what the brokers take of those who write to these topics.
  ///
  /// The embedded broker keeps no settings, and takes batches of the default size.
  ///
  /// - Throws: when the brokers do not answer. A topic whose settings this client may not read is `unknown`.
  public func writeLimits(of topics: [String]) async throws(KafkaError) -> WriteLimits {
    var limits = WriteLimits()
    if try await isEmbeddedBroker() { return limits }
    for topic in Set(topics).sorted() {
      do throws(KafkaError) {
        let settings = try await settings(ofTopic: topic)
        limits.batchBytes[topic] = settings["max.message.bytes"].flatMap { Int($0) }
        limits.minimumInSync[topic] = settings["min.insync.replicas"].flatMap { Int($0) }
      } catch {
        switch error.code {
        case .topicNotAuthorized, .clusterNotAuthorized, .unsupported, .unknownTopicOrPartition: limits.unknown[topic] = error
        default: throw error
        }
      }
    }
    return limits
  }
}
