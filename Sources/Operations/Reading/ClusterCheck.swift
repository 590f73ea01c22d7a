public import EventLoop
public import Kafka
import Notifications
public import Store
public import Worker

/// What a tool was given does not belong together.
public enum ClusterMismatch: Error, Sendable, Equatable {
  /// The newest events are told by clusters of these names, and none by the one that was given.
  case otherName(found: [String], given: String)
  /// No cluster has used this Redis, or it was emptied and not rebuilt.
  case unusedRedis
  /// Of so many buckets Redis has not all.
  case missingBuckets(Int, of: Int)
  /// Workers have judged requests, and the group has committed nothing for this topic and has no members; these groups have committed something.
  case idleGroup(String, topic: String, others: [String])
}

/// Finds out, before a tool writes anything, whether its settings are those of the cluster that it finds: an actor on a loop.
public actor ClusterCheck {
  /// The loop that it lives on.
  public nonisolated let loop: EventLoop
  /// The loop is its executor.
  public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
  private let kafka: KafkaConfiguration
  private let topics: Topics

  /// Events that are read of each partition: its last ones.
  private static let events: Int64 = 16
  /// Events that are older than the newest by more tell nothing: a cluster may be renamed.
  private static let renamingMilliseconds: Int64 = 600_000
  /// How long Redis may take to answer at first.
  private static let redisMilliseconds = 10_000
  /// How long a group whose members nobody tells may take to commit for the first time.
  private static let commitMilliseconds: Int64 = 5_000
  /// How long other groups are asked after, to name those that have committed something.
  private static let groupsMilliseconds: Int64 = 3_000

  /// Makes one for a cluster.
  public init(on loop: EventLoop, _ kafka: KafkaConfiguration, _ topics: Topics) {
    (self.loop, self.kafka, self.topics) = (loop, kafka, topics)
  }

  // MARK: The name

  /// Compares the cluster's name with what its newest events call it; where there are none it may have any name.
  ///
  /// - Throws: ``ClusterMismatch/otherName(found:given:)``; else what Kafka said.
  public func check(name: String) async throws {
    let names = try await names()
    guard names.isEmpty || names.contains(name) else { throw ClusterMismatch.otherName(found: names.sorted(), given: name) }
  }

  /// The rules with the cluster's name, where they have none and its newest events agree on one.
  ///
  /// Of several names nobody knows which of them an origin had to give.
  func completing(_ rules: RequestRules) async throws -> RequestRules {
    guard rules.cluster == nil else { return rules }
    let names = try await names()
    var rules = rules
    rules.cluster = names.count == 1 ? names[0] : nil
    return rules
  }

  /// The names by which the newest events call the cluster (`ce_source`).
  func names() async throws -> [String] {
    let stretches: [TopicStretch]
    do {
      stretches = try await Admin.with(kafka) { try await $0.stretches(of: topics.events) }
    } catch let error as KafkaError where error.code == .unknownTopicOrPartition {
      // Where there is no such topic there are no events.
      return []
    }
    let found = Names()
    try await TopicReader(on: loop, kafka).read(
      stretches.map { TopicStretch($0.partition, max($0.offsets.lowerBound, $0.offsets.upperBound - Self.events), $0.offsets.upperBound) },
      "the newest events"
    ) { record in
      guard let name = ClusterName(of: record) else { return }
      found.newest[name, default: .min] = max(found.newest[name, default: .min], record.timestamp)
    }
    guard let newest = found.newest.values.max() else { return [] }
    return found.newest.filter { $0.value >= newest - Self.renamingMilliseconds }.map(\.key.text)
  }

  private final class Names { var newest: [ClusterName: Int64] = [:] }

  // MARK: Redis and the group

  /// Compares Redis' identity with that of Kafka and the topics, and makes sure that it has what the workers have put there.
  ///
  /// - Throws: `RedisError` where it is another cluster's, ``ClusterMismatch`` where it is nobody's or has lost buckets; else what Kafka or
  ///   Redis said.
  public func check(redis store: StoreConfiguration) async throws {
    let (kafka, topics) = (kafka, topics)
    let (id, isNew) = try await Admin.with(kafka) { admin in
      (try await admin.describeCluster().id ?? "", try await !admin.hasJournal(topics))
    }
    let shards = Shards(on: loop, store, clientName: "carillon-check")
    shards.start()
    defer { shards.close() }
    try await shards.waitUntilUp(withinMilliseconds: Self.redisMilliseconds)
    let identity = ClusterIdentity(kafka: id, topicPrefix: topics.prefix, buckets: store.buckets, name: nil)
    let standing = try await identity.verify(shards)
    // Where nothing was judged yet nothing is to be there.
    guard !isNew else { return }
    guard standing != .nobodys else { throw ClusterMismatch.unusedRedis }
    guard let buckets = await Markers(shards).read([]) else { throw StoreError(.unavailable, "Redis does not answer") }
    let missing = buckets.count { $0 == nil }
    guard missing == 0 else { throw ClusterMismatch.missingBuckets(missing, of: buckets.count) }
  }

  /// Makes sure that the workers' group is one that has worked on the requests, or does now.
  ///
  /// What it refuses is not known to be right: requests were judged, but this group has committed nothing and has no members. A cluster whose
  /// workers have not committed yet passes, and one whose workers have stopped, as long as Kafka keeps their offsets.
  ///
  /// - Throws: ``ClusterMismatch/idleGroup(_:topic:others:)``; else what Kafka said.
  public func check(group: String) async throws {
    let (kafka, topics) = (kafka, topics)
    let end = SteadyClock.milliseconds() + Self.commitMilliseconds
    let others = try await Admin.with(kafka) { admin -> [String]? in
      let partitions = try await admin.describe(topic: topics.requests).partitions.map { TopicPartition(topics.requests, $0.id) }
      let isEmbedded = try await admin.isEmbeddedBroker()
      while true {
        guard try await admin.committed(group: group, of: partitions).isEmpty else { return nil }
        guard try await admin.hasJournal(topics) else { return nil }
        if try await admin.ends(of: partitions).values.allSatisfy(\.isEmpty) { return nil }
        guard isEmbedded else { break }
        // It does not tell members, and workers that have just begun commit soon.
        guard SteadyClock.milliseconds() < end else { return [] }
        try await Task.sleep(for: .milliseconds(200))
      }
      guard try await admin.members(of: group).members.isEmpty else { return nil }
      var others: [String] = []
      // Only for the message: who may not list groups, or ask for their offsets, gets none.
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

/// The name by which an event calls the cluster that tells it.
private struct ClusterName: Hashable {
  let text: String

  private static let prefix = "/carillon/"

  /// Nil where a record is no event, or one that no cluster of this program has told.
  init?(of record: RecordView) {
    guard let source = record.header(EventHeader.source.rawValue)?.characters, source.hasPrefix(Self.prefix) else { return nil }
    text = String(source.dropFirst(Self.prefix.count))
    let isName = text.utf8.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"): true
      default: [UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_")].contains(byte)
      }
    }
    guard isName, (1...64).contains(text.utf8.count) else { return nil }
  }
}

extension Topics {
  /// Groups in the order in which they may be that of the transform workers, by their names: there may be too many to ask each.
  fileprivate func likeliestFirst(_ groups: [String]) -> [String] {
    func rank(_ group: String) -> Int { (group.hasPrefix(prefix) ? 0 : 2) + (group.contains("transform") ? 0 : 1) }
    return groups.sorted { (rank($0), $0) < (rank($1), $1) }
  }
}

extension Admin {
  /// Whether some worker has judged requests of these topics.
  fileprivate func hasJournal(_ topics: Topics) async throws(KafkaError) -> Bool {
    do throws(KafkaError) {
      let partitions = try await describe(topic: topics.journal).partitions.map { TopicPartition(topics.journal, $0.id) }
      return try await ends(of: partitions).values.contains { $0.upperBound > 0 }
    } catch {
      guard error.code == .unknownTopicOrPartition else { throw error }
      return false
    }
  }
}
