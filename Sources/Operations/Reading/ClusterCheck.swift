import EventLoop
import Kafka
import Notifications
package import Store
import Worker

/// The settings of a tool do not fit the cluster.
package enum ClusterMismatch: Error, Sendable, Equatable {
  /// The newest events are of clusters with these names, and not of the given one.
  case otherName(found: [String], given: String)
  /// No cluster has used this Redis, or it was emptied and not rebuilt.
  case unusedRedis
  /// Redis does not have all of its buckets.
  case missingBuckets(Int, of: Int)
  /// Workers have judged requests, but this group has committed nothing and has no members. The other groups have committed offsets.
  case idleGroup(String, topic: String, others: [String])
}

/// Checks that a tool's settings fit the cluster before it writes.
extension ClusterTool {
  /// The number of last events to read of each partition.
  private static let events: Int64 = 16
  /// Events that are older than the newest by more do not count. A cluster may be renamed.
  private static let renamingMilliseconds: Int64 = 600_000
  /// How long a group may take for its first commit, if its members are unknown.
  private static let commitMilliseconds: Int64 = 5_000
  /// How long to look for other groups with commits, to name them.
  private static let groupsMilliseconds: Int64 = 3_000

  // MARK: The name

  /// Compares the cluster's name with that of its newest events. Without events any name passes.
  ///
  /// - Throws: ``ClusterMismatch/otherName(found:given:)``, or Kafka's error.
  package func check(name: String) async throws {
    let names = try await names()
    guard names.isEmpty || names.contains(name) else { throw ClusterMismatch.otherName(found: names.sorted(), given: name) }
  }

  /// Reads the rules with the cluster's name, if it was not given and the newest events agree on it.
  ///
  /// If there are several names, it is unknown which of them an origin needs.
  func completeRules() async throws -> RequestRules {
    guard rules.cluster == nil else { return rules }
    let names = try await names()
    var rules = rules
    rules.cluster = names.count == 1 ? names[0] : nil
    return rules
  }

  /// Reads the cluster's names in the newest events (`ce_source`).
  func names() async throws -> [String] {
    let topic = rules.topics.events
    let stretches = try await Admin.with(kafka) { try await $0.stretches(ofOptional: topic) }
    let found = Gathered([ClusterName: Int64]())
    try await TopicReader(on: loop, kafka).read(
      stretches.map { TopicStretch($0.partition, max($0.offsets.lowerBound, $0.offsets.upperBound - Self.events), $0.offsets.upperBound) },
      "the newest events"
    ) { record in
      guard let name = ClusterName(of: record) else { return }
      found.value[name, default: .min] = max(found.value[name, default: .min], record.timestamp)
    }
    guard let newest = found.value.values.max() else { return [] }
    return found.value.filter { $0.value >= newest - Self.renamingMilliseconds }.map(\.key.text)
  }

  // MARK: Redis and the group

  /// Compares Redis' identity with Kafka and the topics, and checks that all buckets exist.
  ///
  /// - Throws: `RedisError` if it belongs to another cluster, ``ClusterMismatch`` if it belongs to none or has lost buckets, or the error
  ///   of Kafka or Redis.
  package func check(redis store: StoreConfiguration) async throws {
    let topics = rules.topics
    let (id, isNew) = try await Admin.with(kafka) { admin in
      (try await admin.describeCluster().id ?? "", try await !admin.hasJournal(topics))
    }
    try await Shards.with(on: loop, store, clientName: "carillon-check") { shards in
      let identity = ClusterIdentity(kafka: id, topicPrefix: topics.prefix, buckets: store.buckets, name: nil)
      let standing = try await identity.verify(shards)
      // Before the first verdict Redis may be empty.
      guard !isNew else { return }
      guard standing != .nobodys else { throw ClusterMismatch.unusedRedis }
      guard let buckets = await Markers(shards).read([]) else { throw StoreError(.unavailable, "Redis does not answer") }
      let missing = buckets.count { $0 == nil }
      guard missing == 0 else { throw ClusterMismatch.missingBuckets(missing, of: buckets.count) }
    }
  }

  /// Checks that the workers' group works on the requests, or has done so.
  ///
  /// It refuses a group without commits and members if requests were judged. A cluster passes before its first commit. It also passes after
  /// its workers have stopped, while Kafka keeps their offsets.
  ///
  /// - Throws: ``ClusterMismatch/idleGroup(_:topic:others:)``, or Kafka's error.
  package func check(group: String) async throws {
    let topics = rules.topics
    let end = SteadyClock.milliseconds() + Self.commitMilliseconds
    let others = try await Admin.with(kafka) { admin -> [String]? in
      let partitions = try await admin.describe(topic: topics.requests).partitions.map { TopicPartition(topics.requests, $0.id) }
      let isEmbedded = try await admin.isEmbeddedBroker()
      while true {
        guard try await admin.committed(group: group, of: partitions).isEmpty else { return nil }
        guard try await admin.hasJournal(topics) else { return nil }
        if try await admin.ends(of: partitions).values.allSatisfy(\.isEmpty) { return nil }
        guard isEmbedded else { break }
        // The members are unknown, and workers that have just started commit soon.
        guard SteadyClock.milliseconds() < end else { return [] }
        try await Task.sleep(for: .milliseconds(200))
      }
      guard try await admin.members(of: group).members.isEmpty else { return nil }
      var others: [String] = []
      // These groups are only for the message. Without the right to list groups it names none.
      let groups = ((try? await admin.groups()) ?? []).map(\.name).filter { $0 != group }
      let until = SteadyClock.milliseconds() + Self.groupsMilliseconds
      for other in topics.likeliestFirst(groups) {
        if (try? await admin.committed(group: other, of: partitions).isEmpty) == false { others.append(other) }
        guard SteadyClock.milliseconds() < until else { break }
      }
      return others.sorted()
    }
    if let others { throw ClusterMismatch.idleGroup(group, topic: topics.requests, others: others) }
  }
}

/// The cluster's name in an event.
private struct ClusterName: Hashable {
  let text: String

  private static let prefix = "/carillon/"

  /// Nil if a record is not an event of this program.
  init?(of record: RecordView) {
    guard let source = record.header(EventHeader.source.rawValue)?.text, source.hasPrefix(Self.prefix) else { return nil }
    text = String(source.dropFirst(Self.prefix.count))
    guard (1...64).contains(text.utf8.count), text.utf8.allSatisfy(ApplicationTopic.isNameByte) else { return nil }
  }
}

extension Topics {
  /// Sorts groups by how likely they are the transform workers', by name. There may be too many to ask each.
  fileprivate func likeliestFirst(_ groups: [String]) -> [String] {
    func rank(_ group: String) -> Int { (group.hasPrefix(prefix) ? 0 : 2) + (group.contains("transform") ? 0 : 1) }
    return groups.sorted { (rank($0), $0) < (rank($1), $1) }
  }
}

extension Admin {
  /// Whether workers have judged requests of these topics.
  fileprivate func hasJournal(_ topics: Topics) async throws(KafkaError) -> Bool {
    try await stretches(ofOptional: topics.journal).contains { $0.offsets.upperBound > 0 }
  }
}
