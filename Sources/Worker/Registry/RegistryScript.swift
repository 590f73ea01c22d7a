public import Redis

/// How a registration that Kafka has taken gets into Redis, by the lane that has published it and by the worker that reads `devices`.
public enum RegistryScript {
  /// Applies a registration, unless one from a later record stands.
  ///
  /// Keys: the device's hash, its mailbox, the markers of its bucket. Arguments: owner 24 or empty for an unregistration, registration
  /// 20 (see `RedisKeys`), milliseconds that an unregistered device is remembered, the key of the audience that it belongs to or empty.
  /// Answers `{1, former owner, former audience}`, `{0}` where a later record stands, or `{-2}` where Redis has lost the bucket. For the
  /// same owner the earliest `since` stands, also that of an earlier record that comes later.
  public static let apply = RedisScript(
    """
    if redis.call('EXISTS', KEYS[3]) == 0 then return {-2} end
    local s = redis.call('HMGET', KEYS[1], 'u', 'r', 'a')
    local owner, former = ARGV[1], s[1] or ''
    local function same(a, b) return #a == #b and string.sub(a, 1, 8) == string.sub(b, 1, 8) and string.sub(a, 17) == string.sub(b, 17) end
    local function since(a) return struct.unpack('>I8', a, 9) end
    if s[2] then
      local offset = struct.unpack('>I8', s[2], 13)
      local this = struct.unpack('>I8', ARGV[2], 13)
      if offset > this then
        if owner ~= '' and same(owner, former) and since(owner) < since(former) then redis.call('HSET', KEYS[1], 'u', owner) end
        return {0}
      end
    end
    if owner == '' then
      redis.call('HSET', KEYS[1], 'r', ARGV[2])
      redis.call('HDEL', KEYS[1], 'u', 'a', 'p', 'g')
      redis.call('PEXPIRE', KEYS[1], ARGV[3])
      redis.call('PEXPIRE', KEYS[2], ARGV[3])
      return {1, former, s[3] or ''}
    end
    if same(owner, former) and since(former) < since(owner) then owner = former end
    redis.call('HSET', KEYS[1], 'u', owner, 'r', ARGV[2], 'a', ARGV[4])
    redis.call('PERSIST', KEYS[1])
    return {1, former, s[3] or ''}
    """)
}
