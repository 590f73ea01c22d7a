import Redis

/// What a session asks of Redis. Keys are always the device's hash, then its mailbox.
enum SessionScripts {
  /// Takes the presence for a new session.
  ///
  /// Arguments: presence 12, digest of the registration 8.
  /// Answers `{1, former presence, owner, gap, entries in the mailbox}`, or `{0, owner, registration}` where the registration that
  /// stands is not the one that the device brings: it is published, applied, and the call repeated.
  static let enter = RedisScript(
    """
    local s = redis.call('HMGET', KEYS[1], 'p', 'u', 'r', 'g')
    if not s[2] or not s[3] or string.sub(s[3], 1, 8) ~= ARGV[2] then return {0, s[2] or '', s[3] or ''} end
    redis.call('HSET', KEYS[1], 'p', ARGV[1])
    redis.call('PERSIST', KEYS[2])
    return {1, s[1] or '', s[2], s[4] or '', redis.call('HLEN', KEYS[2])}
    """)

  /// Applies a registration that Kafka has taken.
  ///
  /// Arguments: owner 24 or '' for an unregistration, registration 20, milliseconds that an unregistered device is remembered, the key of
  /// the audience that it belongs to or ''.
  /// Answers `{1, former owner, former audience}`, or `{0}` where a later record stands. For the same owner the earliest `since` stands.
  static let register = RedisScript(
    """
    local s = redis.call('HMGET', KEYS[1], 'u', 'r', 'a')
    local owner, former = ARGV[1], s[1] or ''
    if s[2] then
      local offset = struct.unpack('>I8', s[2], 13)
      local this = struct.unpack('>I8', ARGV[2], 13)
      if offset > this then return {0} end
    end
    if owner == '' then
      redis.call('HSET', KEYS[1], 'r', ARGV[2])
      redis.call('HDEL', KEYS[1], 'u', 'a', 'p', 'g')
      redis.call('PEXPIRE', KEYS[1], ARGV[3])
      return {1, former, s[3] or ''}
    end
    if string.sub(owner, 1, 8) == string.sub(former, 1, 8) and string.sub(owner, 17, 24) == string.sub(former, 17, 24) then
      if struct.unpack('>I8', former, 9) < struct.unpack('>I8', owner, 9) then owner = former end
    end
    redis.call('HSET', KEYS[1], 'u', owner, 'r', ARGV[2], 'a', ARGV[4])
    redis.call('PERSIST', KEYS[1])
    return {1, former, s[3] or ''}
    """)

  /// The close of a session: gives the presence up if it is still this session's.
  ///
  /// Arguments: presence 12, milliseconds to keep the mailbox. Answers 1 if it was.
  static let leave = RedisScript(
    """
    if redis.call('HGET', KEYS[1], 'p') ~= ARGV[1] then return 0 end
    redis.call('HDEL', KEYS[1], 'p')
    redis.call('PEXPIRE', KEYS[2], ARGV[2])
    return 1
    """)

  /// The repeated hello: restores an absent presence, finds out about a foreign one.
  ///
  /// Arguments: presence 12. Answers `{1, entries in the mailbox}`, `{0}` when the device is elsewhere, `{-1}` when it is registered
  /// no more.
  static let refresh = RedisScript(
    """
    local s = redis.call('HMGET', KEYS[1], 'p', 'u')
    if not s[2] then return {-1} end
    if s[1] and s[1] ~= ARGV[1] then return {0} end
    if not s[1] then redis.call('HSET', KEYS[1], 'p', ARGV[1]) end
    redis.call('PERSIST', KEYS[2])
    return {1, redis.call('HLEN', KEYS[2])}
    """)

  /// The oldest entries of the mailbox.
  ///
  /// Keys: the mailbox only. Arguments: how many; behind how many (0 when absent). Answers revision, entry, revision, entry, … in order.
  static let page = RedisScript(
    """
    local all = redis.call('HKEYS', KEYS[1])
    local function earlier(a, b)
      local t, p, o = struct.unpack('>I8I4I8', a)
      local t2, p2, o2 = struct.unpack('>I8I4I8', b)
      if t ~= t2 then return t < t2 end
      if p ~= p2 then return p < p2 end
      return o < o2
    end
    table.sort(all, earlier)
    local answer, behind = {}, tonumber(ARGV[2] or 0)
    for i = 1, math.min(#all - behind, tonumber(ARGV[1])) do
      answer[2 * i - 1] = all[behind + i]
      answer[2 * i] = redis.call('HGET', KEYS[1], all[behind + i])
    end
    return answer
    """)

  /// All of them, to be loaded when a connection comes up.
  static let all = [enter, register, leave, refresh, page]
}
