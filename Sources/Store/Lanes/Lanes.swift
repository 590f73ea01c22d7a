import Redis

/// How fan-out lanes share the partitions of `deliveries` among themselves: a sorted set of lanes and their last heartbeats, by Redis' clock.
/// Loop-confined.
public final class Lanes {
  private let shards: Shards
  private let calls = Calls()

  /// Of these servers.
  public init(_ shards: Shards) { self.shards = shards }

  /// Takes a partition that no living lane has, or the least taken one.
  ///
  /// Key: the lanes. Arguments: the lane's name, milliseconds after which a silent lane is dead, the number of partitions. Answers the
  /// partition.
  static let claimScript = RedisScript(
    """
    local t = redis.call('TIME')
    local now = t[1] * 1000 + math.floor(t[2] / 1000)
    redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - tonumber(ARGV[2]))
    local taken, least, partition = {}, math.huge, 0
    for _, lane in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
      local p = tonumber(string.match(lane, '^%d+'))
      taken[p] = (taken[p] or 0) + 1
    end
    for p = 0, tonumber(ARGV[3]) - 1 do
      if (taken[p] or 0) < least then least, partition = taken[p] or 0, p end
    end
    redis.call('ZADD', KEYS[1], now, partition .. ':' .. ARGV[1])
    return partition
    """)

  /// The heartbeat.
  ///
  /// Key: the lanes. Arguments: the lane's member. Answers 0 when it had lapsed and is restored by this call, else 1.
  static let beatScript = RedisScript(
    """
    local t = redis.call('TIME')
    local known = redis.call('ZSCORE', KEYS[1], ARGV[1])
    redis.call('ZADD', KEYS[1], t[1] * 1000 + math.floor(t[2] / 1000), ARGV[1])
    return known and 1 or 0
    """)

  /// A lane's place among the lanes.
  public struct Claim: Sendable {
    /// The partition of `deliveries` that it reads.
    public let partition: Int32
    fileprivate let member: String
  }

  /// Takes a partition for a lane.
  ///
  /// - Parameters:
  ///   - name: unique among all lanes.
  ///   - lifetimeMilliseconds: how long a silent lane counts as alive.
  public func claim(name: String, lifetimeMilliseconds: Int, partitions: Int) async throws(StoreError) -> Claim {
    let answer = try await shards.common.answer(
      Self.claimScript, keys: [.text(Keys.lanes)],
      arguments: [.text(name), .integer(Int64(lifetimeMilliseconds)), .integer(Int64(partitions))])
    guard let partition = answer.integer, (0..<Int64(partitions)).contains(partition) else {
      throw StoreError(.faulty, "the claim of a partition was answered with something else")
    }
    return Claim(partition: Int32(partition), member: "\(partition):\(name)")
  }

  /// Says that a lane lives; answers whether it had counted as alive.
  public func beat(_ claim: Claim, _ then: @escaping (Result<Bool, StoreError>) -> Void) {
    calls.command.begin(Self.beatScript, keys: 1)
    calls.command.append(Keys.lanes)
    calls.command.append(claim.member)
    calls.send(over: shards.common) { then($0.map { $0.integer != 0 }) }
  }

  /// Gives the partition up; when it fails the lane counts as alive until its lifetime is over.
  public func leave(_ claim: Claim) async {
    _ = try? await shards.common.answer("ZREM", .text(Keys.lanes), .text(claim.member))
  }
}
