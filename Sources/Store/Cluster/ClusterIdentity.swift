import Redis

/// Whose Redis it is: the Kafka cluster and the topics that everything in it comes from. Loop-confined.
///
/// Markers are offsets, and requests are known by where they lie: beside another Kafka, or other topics, they would say that something was applied
/// which was not.
public struct ClusterIdentity: Sendable, Hashable {
  /// The id that the brokers give their cluster; empty where they give none.
  public let kafka: String
  /// What the names of all topics begin with.
  public let topicPrefix: String

  /// A cluster's identity.
  public init(kafka: String, topicPrefix: String) { (self.kafka, self.topicPrefix) = (kafka, topicPrefix) }

  /// Key: the identity. Arguments: kafka, prefix. Answers what stands there, which are these where nothing stood.
  static let claimScript = RedisScript(
    """
    if redis.call('EXISTS', KEYS[1]) == 0 then redis.call('HSET', KEYS[1], 'kafka', ARGV[1], 'prefix', ARGV[2]) end
    return redis.call('HMGET', KEYS[1], 'kafka', 'prefix')
    """)

  /// Makes a Redis this cluster's, or finds that it is already.
  ///
  /// - Throws: `RedisError` with `unsuitableServer` where it is another's; `StoreError` where it does not answer, or takes no writes now.
  public func claim(_ shards: Shards) async throws {
    let answer = try await shards.common.answer(
      Self.claimScript, keys: [.text(Keys.cluster)], arguments: [.text(kafka), .text(topicPrefix)])
    let found = (answer.array ?? []).map { $0.text ?? "" }
    guard found.count == 2 else { throw StoreError(.faulty, "the claim of Redis was answered with something else") }
    try compare(ClusterIdentity(kafka: found[0], topicPrefix: found[1]))
  }

  /// Finds out, without writing anything, that a Redis is this cluster's or nobody's.
  ///
  /// - Returns: whether it is this cluster's already.
  /// - Throws: as ``claim(_:)``.
  public func verify(_ shards: Shards) async throws -> Bool {
    guard let found = try await Self.standing(in: shards) else { return false }
    try compare(found)
    return true
  }

  private func compare(_ other: ClusterIdentity) throws(RedisError) {
    guard other != self else { return }
    throw RedisError(
      .unsuitableServer,
      "this Redis belongs to the Kafka cluster \(other.kafka) and its topics \(other.topicPrefix)…, and not to \(kafka) and \(topicPrefix)…: give --redis, --kafka and --topic-prefix of one cluster; where Kafka was replaced for good, empty Redis first"
    )
  }

  /// Whose a Redis is; nil where no cluster has used it yet.
  public static func standing(in shards: Shards) async throws(StoreError) -> ClusterIdentity? {
    let answer = try await shards.common.answer("HMGET", .text(Keys.cluster), "kafka", "prefix")
    guard let found = answer.array, found.count == 2, let kafka = found[0].text, let prefix = found[1].text else { return nil }
    return ClusterIdentity(kafka: kafka, topicPrefix: prefix)
  }
}
