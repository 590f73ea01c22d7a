/// The brokers' limits for writes to topics: `max.message.bytes` and `min.insync.replicas`.
public struct WriteLimits: Sendable, Hashable {
  /// The brokers' default limit of a batch in bytes. 1 MiB and the bytes around its records.
  public static let standardBatchBytes = 1_048_588

  /// The limit of a batch in bytes by topic, if known.
  public var batchBytes: [String: Int] = [:]
  /// How many copies must be in sync for a write, by topic, if known.
  public var minimumInSync: [String: Int]
  /// Topics whose settings this client may not read, with the error.
  public var unknown: [String: KafkaError] = [:]

  /// Limits with the defaults of brokers, but for these.
  public init(minimumInSync: [String: Int] = [:]) { self.minimumInSync = minimumInSync }

  /// The limit of a batch of a topic, in bytes; the default if unknown.
  public func batchBytes(of topic: String) -> Int { batchBytes[topic] ?? Self.standardBatchBytes }

  /// The smallest limit of a batch among some topics, in bytes.
  public func batchBytes(ofEach topics: [String]) -> Int { topics.map { batchBytes(of: $0) }.min() ?? Self.standardBatchBytes }
}

extension Admin {
  /// Reads the brokers' limits for writes to these topics.
  ///
  /// The embedded broker has no settings, and the default limit.
  ///
  /// - Throws: if the brokers do not answer. A topic whose settings this client may not read is in `unknown`.
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
