import Kafka
import Worker

/// How the lane takes part in its group, by the facts about topics and brokers.
struct GroupPlan {
  private(set) var partitions: TopicPartitions
  private let sessionMilliseconds: Int
  /// Whether the lanes are static members. The embedded broker has none.
  let hasStaticMembers: Bool
  private let retentionMilliseconds: Int?

  /// The shortest session that brokers allow by default, in milliseconds.
  private static let shortestSessionByDefault = 6_000

  /// Asks the brokers.
  ///
  /// - Throws: if they do not answer, or if a topic is missing.
  init(_ settings: TransformSettings, _ admin: Admin, _ logger: Logger) async throws {
    let cluster = try await admin.describeCluster()
    hasStaticMembers = !cluster.isEmbedded
    sessionMilliseconds = await Self.sessionTimeout(settings.sessionMilliseconds, cluster, admin, logger)
    partitions = try TopicPartitions(settings.topics, cluster)
    // The embedded broker keeps no settings.
    let kept = cluster.isEmbedded ? nil : try? await admin.settings(ofTopic: settings.topics.requests)["retention.ms"]
    retentionMilliseconds = kept.flatMap { Int($0) }
  }

  /// The plan with other numbers of partitions.
  func with(_ partitions: TopicPartitions) -> GroupPlan {
    var plan = self
    plan.partitions = partitions
    return plan
  }

  /// Shows the facts about the topics.
  func show(_ settings: TransformSettings, in metrics: TransformMetrics) {
    metrics.partitions.set(partitions.requests + partitions.devices)
    metrics.unjournaledPartitions.set(partitions.unjournaled.count)
    metrics.show(retentionMilliseconds: max(0, retentionMilliseconds ?? 0), of: settings.topics.requests)
  }

  /// The wanted session timeout, or the shortest that the brokers allow.
  private static func sessionTimeout(_ wanted: Int, _ cluster: ClusterDescription, _ admin: Admin, _ logger: Logger) async -> Int {
    guard let broker = cluster.brokers.keys.min() else { return wanted }
    // The embedded broker takes three seconds to form a group, and forgets members that are silent meanwhile.
    if cluster.isEmbedded { return max(wanted, shortestSessionByDefault) }
    let text = try? await admin.settings(ofBroker: broker)["group.min.session.timeout.ms"]
    // If the brokers do not answer, their default is safe.
    let shortest = text.flatMap { Int($0) } ?? shortestSessionByDefault
    guard wanted < shortest else { return wanted }
    logger.warning(
      "the brokers allow no shorter session: a worker that was killed is noticed later; set group.min.session.timeout.ms there",
      ["wantedMs": wanted, "ms": shortest])
    return shortest
  }

  /// The consumer's options.
  ///
  /// A partition of `devices` belongs to the owner of a partition of requests: that with the same number, modulo the number of journaled
  /// partitions. The group's strategy would balance both topics as if their partitions were alike.
  func options(_ settings: TransformSettings) -> Consumer.Options {
    var options = Consumer.Options(group: settings.group)
    options.offersPartitions = true
    // After a transaction there are offsets without a record. The end of the partition lets markers and commits reach them.
    options.reportsPartitionEnd = true
    options.companions = { [topics = settings.topics, partitions] partition in
      guard partition.topic == topics.requests else { return [] }
      return partitions.devices(of: partition.partition).map { TopicPartition(topics.devices, $0) }
    }
    options.sessionTimeoutMilliseconds = sessionMilliseconds
    // A fetch waits a little for more records. With three thousand records a second each would otherwise take a fetch of its own, which
    // costs the broker 50 µs and both ends two wake-ups. So an idle lane makes fifty fetches a second.
    options.fetch = (bytes: 200_000, waitMilliseconds: 20)
    return options
  }
}
