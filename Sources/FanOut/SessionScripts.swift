import Redis
import Worker

/// What a session asks of Redis. Keys are always the device's hash, its mailbox and the markers of their bucket. Where
/// Redis has lost the bucket the answer is `{-2}`, and nothing is changed.
enum SessionScripts {
  /// Takes the presence for a new session.
  ///
  /// Arguments: presence 12, digest of the registration 8.
  /// Answers `{1, former presence, owner, gap, entries in the mailbox, registration}`, or `{0, owner, registration}` where the registration that
  /// stands is not the one that the device brings: it is published, applied, and the call repeated.
  static let enter = RedisScript(
    """
    if redis.call('EXISTS', KEYS[3]) == 0 then return {-2} end
    local s = redis.call('HMGET', KEYS[1], 'p', 'u', 'r', 'g')
    if not s[2] or not s[3] or string.sub(s[3], 1, 8) ~= ARGV[2] then return {0, s[2] or '', s[3] or ''} end
    redis.call('HSET', KEYS[1], 'p', ARGV[1])
    redis.call('PERSIST', KEYS[2])
    return {1, s[1] or '', s[2], s[4] or '', redis.call('HLEN', KEYS[2]), s[3]}
    """)

  /// The close of a session: gives the presence up if it is still this session's.
  ///
  /// Arguments: presence 12, milliseconds to keep the mailbox. Answers `{1}` if it was, else `{0}`.
  static let leave = RedisScript(
    """
    if redis.call('HGET', KEYS[1], 'p') ~= ARGV[1] then return {0} end
    redis.call('HDEL', KEYS[1], 'p')
    redis.call('PEXPIRE', KEYS[2], ARGV[2])
    return {1}
    """)

  /// The repeated hello: restores an absent presence, finds out about a foreign one.
  ///
  /// Arguments: presence 12. Answers `{1, entries in the mailbox, registration}`, `{0}` when the device is elsewhere, `{-1, registration}`
  /// when it is registered no more.
  static let refresh = RedisScript(
    """
    if redis.call('EXISTS', KEYS[3]) == 0 then return {-2} end
    local s = redis.call('HMGET', KEYS[1], 'p', 'u', 'r')
    if not s[2] then return {-1, s[3] or ''} end
    if s[1] and s[1] ~= ARGV[1] then return {0} end
    if not s[1] then redis.call('HSET', KEYS[1], 'p', ARGV[1]) end
    redis.call('PERSIST', KEYS[2])
    return {1, redis.call('HLEN', KEYS[2]), s[3] or ''}
    """)

  /// The oldest entries of the mailbox.
  ///
  /// Keys: the mailbox only. Arguments: how many; behind how many (0 when absent). Answers revision, entry, revision, entry, … in order;
  /// before them what is no revision.
  static let page = RedisScript(
    """
    \(MailboxScript.fields)
    local all = fields(KEYS[1])
    local answer, behind = {}, tonumber(ARGV[2] or 0)
    for i = 1, math.min(#all - behind, tonumber(ARGV[1])) do
      answer[2 * i - 1] = all[behind + i][4]
      answer[2 * i] = redis.call('HGET', KEYS[1], all[behind + i][4])
    end
    return answer
    """)

  /// All of them, to be loaded when a connection comes up.
  static let all = [enter, RegistryScript.apply, leave, refresh, page]
}
