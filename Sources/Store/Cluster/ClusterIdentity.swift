import Redis

/// Whose Redis it is: the Kafka cluster and the topics that everything in it comes from, and what all of its workers agree on. Loop-confined.
///
/// Markers are offsets, and requests are known by where they lie: beside another Kafka, or other topics, they would say that something was applied
/// which was not. With another number of buckets a worker looks for devices where no other worker puts them, and with another name it knows
/// nothing of what was replayed.
public struct ClusterIdentity: Sendable, Hashable {
  /// The id that the brokers give their cluster; empty where they give none.
  public let kafka: String
  /// What the names of all topics begin with.
  public let topicPrefix: String
  /// How many buckets the keys are spread over; nil where that is not known, as of a Redis that an earlier version has claimed.
  public let buckets: Int?
  /// The cluster's name; nil where that is not known.
  public let name: String?

  /// A cluster's identity.
  public init(kafka: String, topicPrefix: String, buckets: Int?, name: String?) {
    (self.kafka, self.topicPrefix, self.buckets, self.name) = (kafka, topicPrefix, buckets, name)
  }

  private static let fields: [RedisArgument] = ["kafka", "prefix", "buckets", "name"]

  /// Sets each field that is not there, and answers what stands in each then.
  static let claimScript = RedisScript(file: PackageResources.cluster_claim_lua)

  // MARK: Whose it is

  /// What a Redis says of whose it is.
  public enum Standing: Sendable, Equatable {
    /// No cluster has used it yet, or it has lost everything.
    case nobodys
    /// It is this cluster's; an earlier version has claimed it, which did not say all.
    case partly
    /// It is this cluster's.
    case own
  }

  /// Finds out, without writing anything, that a Redis is this cluster's or nobody's.
  ///
  /// - Throws: `RedisError` with `unsuitableServer` where it is another's; `StoreError` where it does not answer.
  public func verify(_ shards: Shards) async throws -> Standing {
    guard let found = try await Self.standing(in: shards) else { return .nobodys }
    try compare(found)
    return found.buckets == nil || found.name == nil ? .partly : .own
  }

  /// Makes a Redis this cluster's, or finds that it is already.
  ///
  /// To be called only where nothing was lost: what stands then is what all workers are held to.
  ///
  /// - Throws: as ``verify(_:)``; also `StoreError` where it takes no writes now.
  public func claim(_ shards: Shards) async throws {
    // One of another cluster gets no field of this one.
    if try await verify(shards) == .own { return }
    let values: [RedisArgument] = [
      .text(kafka), .text(topicPrefix), .integer(Int64(buckets ?? shards.buckets)), .text(name ?? ""),
    ]
    let answer = try await shards.common.answer(
      Self.claimScript, keys: [.text(Keys.cluster)], arguments: zip(Self.fields, values).flatMap { [$0, $1] })
    guard let found = Self(answer.array ?? []) else {
      throw StoreError(.faulty, "the key '\(Keys.cluster)' in Redis cannot be read: it says whose this Redis is")
    }
    try compare(found)
  }

  /// Makes a Redis this cluster's where it has all that workers have put there, or where nothing was ever put there.
  ///
  /// - Parameter isNew: whether the cluster has never worked on anything, which is asked where Redis does not have all buckets.
  /// - Returns: whether it is; false for one that has lost what it had: it stays nobody's until it was rebuilt.
  /// - Throws: as ``claim(_:)``.
  public func join(_ shards: Shards, isNew: () async throws -> Bool) async throws -> Bool {
    if try await verify(shards) == .own { return true }
    let next = try await shards.common.answer("EXISTS", .text(shards.keys.markers(shards.buckets)))
    if next.integer == 1 {
      throw RedisError(.unsuitableServer, "this Redis has more buckets than --buckets \(shards.buckets): give the --buckets of its workers")
    }
    guard let found = await Markers(shards).read([]) else { throw StoreError(.unavailable, "Redis does not answer") }
    if found.contains(where: { $0 == nil }) { guard try await isNew() else { return false } }
    try await claim(shards)
    return true
  }

  /// Whose a Redis is; nil where no cluster has used it yet.
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
    guard found.count == 4, let kafka = found[0].text, let prefix = found[1].text else { return nil }
    var buckets: Int?
    if let text = found[2].text {
      guard let number = Int(text), (1...16_384).contains(number) else { return nil }
      buckets = number
    }
    self.init(kafka: kafka, topicPrefix: prefix, buckets: buckets, name: found[3].text)
  }

  // MARK: Differences

  /// How another identity differs from this one, in words that name the settings; what one of the two does not know differs in nothing.
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

  private func compare(_ other: ClusterIdentity) throws(RedisError) {
    let differences = differences(from: other)
    guard !differences.isEmpty else { return }
    throw RedisError(
      .unsuitableServer,
      "this Redis belongs to another cluster: it has \(differences.joined(separator: "; ")); give --redis, --kafka, --topic-prefix, --buckets and --cluster of one cluster; where Kafka was replaced for good, empty Redis first"
    )
  }
}
