import Redis

/// Where devices are connected: what sessions ask and tell. Loop-confined.
///
/// Keys of its scripts are always the device's hash, its mailbox and the markers of their bucket. Where Redis has lost the bucket,
/// `enterScript` and `refreshScript` answer `{-2}` and change nothing. `leaveScript` and `gapScript` do not look: they change only what is
/// still the session's, of which a lost bucket has nothing.
public final class Presences {
  private let shards: Shards
  private let calls = Calls()
  private let keptMilliseconds: Int64

  /// - Parameter keptMilliseconds: how long the mailbox of a device that does not connect is kept.
  public init(_ shards: Shards, keptMilliseconds: Int64) { (self.shards, self.keptMilliseconds) = (shards, keptMilliseconds) }

  private func keys(of token: String) -> [RedisArgument] {
    let keys = shards.keys
    return [.text(keys.device(token)), .text(keys.mailbox(token)), .text(keys.guardKey(ofDevice: token))]
  }

  private func begin(_ script: RedisScript, _ token: String, _ presence: Presence) {
    calls.command.begin(script, keys: 3)
    for key in keys(of: token) { calls.command.append(key) }
    calls.command.append(presence.bytes)
  }

  // MARK: The hello

  /// Takes the presence for a new session.
  ///
  /// Arguments: presence 12, digest of the registration 8. Answers `{1, former presence, owner, gap, registration}`, or
  /// `{0, owner}` where the registration that stands is not the one that the device brings. One that cannot be read is none.
  static let enterScript = RedisScript(
    """
    if redis.call('EXISTS', KEYS[3]) == 0 then return {-2} end
    local s = redis.pcall('HMGET', KEYS[1], 'p', 'u', 'r', 'g')
    if s.err then return string.find(s.err, 'WRONGTYPE', 1, true) and {0, ''} or s end
    if not s[2] or #s[2] ~= 24 or not s[3] or #s[3] ~= 20 or string.sub(s[3], 1, 8) ~= ARGV[2] then return {0, s[2] or ''} end
    redis.call('HSET', KEYS[1], 'p', ARGV[1])
    redis.call('PERSIST', KEYS[2])
    return {1, s[1] or '', s[2], s[4] or '', s[3]}
    """)

  /// What a hello finds.
  public enum Welcome: Sendable {
    /// The presence is the session's.
    case present(Standing)
    /// Another registration stands than the one that the device brings, of this owner: the device's is published, applied, and the
    /// call repeated.
    case otherRegistration(Owner?)
  }

  /// What stands for a device that has said hello.
  public struct Standing: Sendable {
    /// The session that the presence was taken from.
    public let former: Presence?
    /// Whose the device is.
    public let owner: Owner
    /// What was evicted, and not yet told.
    public let gap: MailboxGap?
    /// The record of its registration.
    public let registration: RegistrationStamp
  }

  /// Takes the presence for a new session, whose device brings the registration of this digest.
  public func enter(_ token: String, _ presence: Presence, digest: UInt64) async throws(StoreError) -> Welcome {
    let answer = try await shards.shard(ofDevice: token).answer(
      Self.enterScript, keys: keys(of: token),
      arguments: [.bytes(presence.bytes), .bytes(withUnsafeBytes(of: digest.bigEndian, Array.init))])
    let parts = answer.array ?? []
    if parts.first?.integer == 0, parts.count == 2 { return .otherRegistration(parts[1].bytes.flatMap { Owner($0) }) }
    guard parts.count == 5, let owner = parts[2].bytes.flatMap({ Owner($0) }),
      let registration = parts[4].bytes.flatMap({ RegistrationStamp($0) })
    else { throw StoreError(.faulty, "what Redis has of the device cannot be read") }
    return .present(
      Standing(
        former: parts[1].bytes.flatMap { Presence($0) }, owner: owner, gap: parts[3].bytes.flatMap { MailboxGap($0) },
        registration: registration))
  }

  // MARK: Later

  /// The repeated hello: restores an absent presence, finds out about another session's.
  ///
  /// Arguments: presence 12. Answers `{1, entries in the mailbox, registration}`, `{0}` when the device is elsewhere, `{-1, registration}`
  /// when it is registered no more, or that cannot be read.
  static let refreshScript = RedisScript(
    """
    if redis.call('EXISTS', KEYS[3]) == 0 then return {-2} end
    local s = redis.pcall('HMGET', KEYS[1], 'p', 'u', 'r')
    if s.err then return string.find(s.err, 'WRONGTYPE', 1, true) and {-1, ''} or s end
    if not s[2] or #s[2] ~= 24 then return {-1, s[3] or ''} end
    if s[1] ~= ARGV[1] then
      if s[1] and #s[1] == #ARGV[1] then return {0} end
      redis.call('HSET', KEYS[1], 'p', ARGV[1])
    end
    redis.call('PERSIST', KEYS[2])
    return {1, redis.call('HLEN', KEYS[2]), s[3] or ''}
    """)

  /// What a repeated hello finds.
  public enum Refreshed: Sendable {
    /// The presence is the session's, and its mailbox has so many entries.
    case present(entries: Int, RegistrationStamp?)
    /// Another session of the device has it.
    case elsewhere
    /// The device is not registered.
    case unregistered(RegistrationStamp?)
  }

  /// Repeats the hello of a session.
  public func refresh(_ token: String, _ presence: Presence) async throws(StoreError) -> Refreshed {
    let answer = try await shards.shard(ofDevice: token).answer(
      Self.refreshScript, keys: keys(of: token), arguments: [.bytes(presence.bytes)])
    let parts = answer.array ?? []
    switch (parts.first?.integer, parts.count) {
    case (1, 3): return .present(entries: Int(parts[1].integer ?? 0), parts[2].bytes.flatMap { RegistrationStamp($0) })
    case (0, 1): return .elsewhere
    case (-1, 2): return .unregistered(parts[1].bytes.flatMap { RegistrationStamp($0) })
    default: throw StoreError(.faulty, "what Redis has of the device cannot be read")
    }
  }

  /// The close of a session: gives the presence up if it is still this session's.
  ///
  /// Arguments: presence 12, milliseconds to keep the mailbox. Answers `{1}` if it was, else `{0}`.
  static let leaveScript = RedisScript(
    """
    if redis.call('HGET', KEYS[1], 'p') ~= ARGV[1] then return {0} end
    redis.call('HSET', KEYS[1], 'p', '')
    redis.call('PEXPIRE', KEYS[2], ARGV[2])
    return {1}
    """)

  /// A session is over. When it fails the presence stays until the device's next hello; until then its records go to nobody, and wait in
  /// the mailbox.
  public func leave(_ token: String, _ presence: Presence) {
    begin(Self.leaveScript, token, presence)
    calls.command.append(keptMilliseconds)
    calls.send(over: shards.shard(ofDevice: token)) { _ in }
  }

  // MARK: The gap

  /// Forgets a gap that the device has been told of, if it is still the same and the session the device's.
  ///
  /// Arguments: presence 12, gap 40. Answers how many fields that were.
  static let gapScript = RedisScript(
    """
    local s = redis.call('HMGET', KEYS[1], 'p', 'g')
    if s[1] ~= ARGV[1] or s[2] ~= ARGV[2] then return 0 end
    return redis.call('HDEL', KEYS[1], 'g')
    """)

  /// The device has been told of a gap, in this session. When it fails, or more was evicted meanwhile, the next hello tells it again.
  public func told(_ gap: MailboxGap, _ token: String, _ presence: Presence) {
    begin(Self.gapScript, token, presence)
    calls.command.append(gap.bytes)
    calls.send(over: shards.shard(ofDevice: token)) { _ in }
  }
}
