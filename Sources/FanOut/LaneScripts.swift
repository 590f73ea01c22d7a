import Redis

/// How fan-out lanes share the partitions of `deliveries` among themselves. The key is the sorted set of lanes; Redis' clock counts.
enum LaneScripts {
  /// Takes a partition that no living lane has, or the least taken one.
  ///
  /// Arguments: the lane's name, milliseconds after which a silent lane is dead, the number of partitions. Answers the partition.
  static let claim = RedisScript(
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
  /// Arguments: the lane's member. Answers 0 when it had lapsed and is restored by this call, else 1.
  static let beat = RedisScript(
    """
    local t = redis.call('TIME')
    local known = redis.call('ZSCORE', KEYS[1], ARGV[1])
    redis.call('ZADD', KEYS[1], t[1] * 1000 + math.floor(t[2] / 1000), ARGV[1])
    return known and 1 or 0
    """)

  /// All of them, to be loaded when a connection comes up.
  static let all = [claim, beat]
}
