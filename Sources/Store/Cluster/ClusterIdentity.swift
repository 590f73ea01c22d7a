public import Notifications
import Redis

/// The Kafka cluster, topics and shared settings that a Redis belongs to.
///
/// Markers are offsets, and requests are known by partition and offset. With another Kafka cluster or other topics, markers would claim
/// that unprocessed records are applied.
/// With another number of buckets a worker looks for devices in the wrong buckets. With another name it does not recognise replayed
/// records.
public struct ClusterIdentity: Sendable, Hashable {
  /// The id that the brokers give their cluster; empty if they give none.
  public let kafka: String
  /// The prefix of all topics' names.
  public let topicPrefix: String
  /// How many buckets the keys are spread over; nil if unknown, for example if an earlier version claimed the Redis.
  public let buckets: Int?
  /// The cluster's name; nil if unknown.
  let name: String?
  /// The layouts that a program reads, or that may lie in a Redis and its Kafka: the fields `needs` to `layout`; nil if unknown.
  public let layouts: ClosedRange<Int>?

  /// A cluster's identity.
  public init(
    kafka: String, topicPrefix: String, buckets: Int?, name: String?, layouts: ClosedRange<Int>? = Layout.cluster.versions
  ) {
    (self.kafka, self.topicPrefix, self.buckets, self.name, self.layouts) = (kafka, topicPrefix, buckets, name, layouts)
  }

  private static let fields: [RedisArgument] = ["kafka", "prefix", "buckets", "name", "layout", "needs"]

  /// Sets each missing field, and answers the value of each field afterwards.
  static let claimScript = RedisScript(file: "cluster-claim")

  // MARK: The owner

  /// How a Redis is related to this cluster.
  public enum Standing: Sendable, Equatable {
    /// No cluster has claimed it yet, or it has lost everything.
    case nobodys
    /// This cluster has claimed it, by an earlier version that did not store all fields.
    case partly
    /// This cluster has claimed it.
    case own
  }

  /// Checks, without a write, that a Redis belongs to this cluster or to none.
  ///
  /// - Throws: `RedisError` with `unsuitableServer` if it belongs to another cluster; `StoreError` if it does not answer.
  public func verify(_ shards: Shards) async throws -> Standing {
    guard let found = try await Self.standing(in: shards) else { return .nobodys }
    try compare(found)
    return found.buckets == nil || found.name == nil || found.layouts == nil ? .partly : .own
  }

  /// Claims a Redis for this cluster, unless the cluster has claimed it already.
  ///
  /// Call it only if nothing was lost: all workers are checked against the fields that it writes.
  ///
  /// - Throws: as ``verify(_:)``; also `StoreError` if the server takes no writes now.
  public func claim(_ shards: Shards) async throws {
    // A Redis of another cluster gets no field of this one.
    if try await verify(shards) == .own { return }
    // A program that starts raises no layout, so it claims the oldest one that it reads.
    let layout = Int64((layouts ?? Layout.cluster.versions).lowerBound)
    let values: [RedisArgument] = [
      .text(kafka), .text(topicPrefix), .integer(Int64(buckets ?? shards.buckets)), .text(name ?? ""),
      .integer(layout), .integer(layout),
    ]
    let answer = try await shards.common.answer(
      Self.claimScript, keys: [.text(Keys.cluster)], arguments: zip(Self.fields, values).flatMap { [$0, $1] })
    guard let found = Self(answer.array ?? []) else {
      throw StoreError(.faulty, "the key '\(Keys.cluster)' in Redis cannot be read: it says whose this Redis is")
    }
    try compare(found)
  }

  /// Claims a Redis if it has all buckets, or if the cluster is new.
  ///
  /// - Parameter isNew: whether the cluster has never processed anything. Called only if Redis does not have all buckets.
  /// - Returns: whether the Redis is this cluster's now. False if it has lost data: then it stays unclaimed until a rebuild.
  /// - Throws: as ``claim(_:)``.
  public func join(_ shards: Shards, isNew: () async throws -> Bool) async throws -> Bool {
    if try await verify(shards) == .own { return true }
    let next = try await shards.common.answer("EXISTS", .text(shards.keys.markers(shards.buckets)))
    if next.integer == 1 {
      throw RedisError(.unsuitableServer, "this Redis has more buckets than --buckets \(shards.buckets): give the --buckets of its workers")
    }
    let markers = Markers(shards)
    guard let found = await markers.read([]) else { throw markers.failure ?? StoreError(.unavailable, "Redis does not answer") }
    if found.contains(where: { $0 == nil }) { guard try await isNew() else { return false } }
    try await claim(shards)
    return true
  }

  /// Reads which cluster a Redis belongs to; nil if no cluster has claimed it yet.
  public static func standing(in shards: Shards) async throws(StoreError) -> ClusterIdentity? {
    let answer: RedisValue
    do throws(StoreError) {
      answer = try await shards.common.answer(["HMGET", .text(Keys.cluster)] + fields)
    } catch { throw error.about(Keys.cluster) }
    let found = answer.array ?? []
    if found.allSatisfy({ $0 == .null }) { return nil }
    guard let identity = Self(found) else {
      throw StoreError(.faulty, "the key '\(Keys.cluster)' in Redis cannot be read: it says whose this Redis is")
    }
    return identity
  }

  private init?(_ found: [RedisValue]) {
    guard found.count == 6, let kafka = found[0].text, let prefix = found[1].text else { return nil }
    var buckets: Int?
    if let text = found[2].text {
      guard let number = Int(text), (1...16_384).contains(number) else { return nil }
      buckets = number
    }
    var layouts: ClosedRange<Int>?
    if found[4] != .null || found[5] != .null {
      guard let newest = found[4].text.flatMap({ Int($0) }), let needed = found[5].text.flatMap({ Int($0) }), needed <= newest else {
        return nil
      }
      layouts = needed...newest
    }
    self.init(kafka: kafka, topicPrefix: prefix, buckets: buckets, name: found[3].text, layouts: layouts)
  }

  // MARK: Differences

  /// Describes how another identity differs, naming the settings. A field that is unknown on one side does not differ.
  public func differences(from other: ClusterIdentity) -> [String] {
    var differences: [String] = []
    func compare(_ what: String, _ own: String?, _ other: String?) {
      guard let own, let other, !own.utf8.elementsEqual(other.utf8) else { return }
      differences.append("\(what) \(other), and not \(own)")
    }
    compare("the Kafka cluster", kafka, other.kafka)
    compare("--topic-prefix", topicPrefix, other.topicPrefix)
    compare("--buckets", buckets.map { "\($0)" }, other.buckets.map { "\($0)" })
    compare("--cluster", name, other.name)
    return differences
  }

  /// The reason why a program must not work with a Redis, by their layouts; nil if it may.
  ///
  /// A program must read the oldest layout that may lie there. What is newer than it reads, it leaves alone. No program raises the numbers
  /// of a Redis by starting.
  public func layoutRefusal(in found: ClusterIdentity) -> String? {
    guard let own = layouts, let found = found.layouts, !own.contains(found.lowerBound) else { return nil }
    let advice = found.lowerBound > own.upperBound ? "start a newer program" : "no layout may be skipped, so start an older program"
    return
      "this cluster has the layouts \(found.lowerBound) to \(found.upperBound), and this program reads \(own.lowerBound) to \(own.upperBound): \(advice), one that reads the layout \(found.lowerBound)"
  }

  private func compare(_ other: ClusterIdentity) throws(RedisError) {
    let differences = differences(from: other)
    guard !differences.isEmpty else {
      if let refusal = layoutRefusal(in: other) { throw RedisError(.unsuitableServer, refusal) }
      return
    }
    throw RedisError(
      .unsuitableServer,
      "this Redis belongs to another cluster: it has \(differences.joined(separator: "; ")); give --redis, --kafka, --topic-prefix, --buckets and --cluster of one cluster; where Kafka was replaced for good, empty Redis first"
    )
  }
}
