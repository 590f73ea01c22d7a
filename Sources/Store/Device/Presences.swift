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
  static let enterScript = RedisScript(file: PackageResources.presence_enter_lua)

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

  /// Restores an absent presence, and finds another session's.
  static let refreshScript = RedisScript(file: PackageResources.presence_refresh_lua)

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

  /// Removes the presence if it is still this session's.
  static let leaveScript = RedisScript(file: PackageResources.presence_leave_lua)

  /// A session is over. When it fails the presence stays until the device's next hello; until then its records go to nobody, and wait in
  /// the mailbox.
  public func leave(_ token: String, _ presence: Presence) {
    begin(Self.leaveScript, token, presence)
    calls.command.append(keptMilliseconds)
    calls.send(over: shards.shard(ofDevice: token)) { _ in }
  }

  // MARK: The gap

  /// Removes a gap that the device was told of, if it is still the same gap and the device this session's.
  static let gapScript = RedisScript(file: PackageResources.presence_gap_lua)

  /// The device has been told of a gap, in this session. When it fails, or more was evicted meanwhile, the next hello tells it again.
  public func told(_ gap: MailboxGap, _ token: String, _ presence: Presence) {
    begin(Self.gapScript, token, presence)
    calls.command.append(gap.bytes)
    calls.send(over: shards.shard(ofDevice: token)) { _ in }
  }
}
