import Redis

/// The presences of devices, as sessions take, refresh and leave them.
///
/// The keys of its scripts are the device's hash, its mailbox and the markers of their bucket. If Redis has lost the bucket, `enterScript`
/// and `refreshScript` answer `{-2}` and change nothing.
/// `leaveScript` and `gapScript` do not look for the markers. They change only what still belongs to the session, and a lost bucket has
/// nothing of it.
public final class Presences {
  private let shards: Shards
  private let calls = Calls()
  private let keptMilliseconds: Int64

  /// - Parameter keptMilliseconds: how long Redis keeps the mailbox of a device that does not connect.
  public init(_ shards: Shards, keptMilliseconds: Int64) { (self.shards, self.keptMilliseconds) = (shards, keptMilliseconds) }

  private func keys(of token: String) -> [String] { shards.keys.ofDevice(token) }

  private func begin(_ script: RedisScript, _ token: String, _ presence: Presence) {
    calls.command.begin(script, keys: keys(of: token))
    calls.command.append(presence.bytes)
  }

  // MARK: The hello

  /// Takes the presence for a new session.
  static let enterScript = RedisScript(file: "presence-enter")

  /// The result of a hello.
  public enum Welcome: Sendable {
    /// The presence is the session's.
    case present(Standing)
    /// Redis has another registration than the device sent, of this owner. The caller publishes and applies the device's registration, then
    /// repeats the call.
    case otherRegistration(Owner?)
  }

  /// The state of a device that has said hello.
  public struct Standing: Sendable {
    /// The former session, which had the presence until now.
    public let former: Presence?
    /// The device's owner.
    public let owner: Owner
    /// Which entries were evicted since the device was last notified of a gap.
    public let gap: MailboxGap?
    /// The record that was applied last.
    public let registration: RegistrationStamp
  }

  /// Takes the presence for a new session of a device whose registration has this digest.
  public func enter(_ token: String, _ presence: Presence, digest: UInt64) async throws(StoreError) -> Welcome {
    let answer = try await shards.shard(ofDevice: token).answer(
      Self.enterScript, keys: keys(of: token).map { .text($0) },
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

  /// Restores a missing presence, and finds out whether another session has it.
  static let refreshScript = RedisScript(file: "presence-refresh")

  /// The result of a repeated hello.
  public enum Refreshed: Sendable {
    /// The session has the presence, and its mailbox has this many entries.
    case present(entries: Int, RegistrationStamp?)
    /// Another session of the device has the presence.
    case elsewhere
    /// The device is not registered.
    case unregistered(RegistrationStamp?)
  }

  /// Repeats the hello of a session.
  public func refresh(_ token: String, _ presence: Presence) async throws(StoreError) -> Refreshed {
    let answer = try await shards.shard(ofDevice: token).answer(
      Self.refreshScript, keys: keys(of: token).map { .text($0) }, arguments: [.bytes(presence.bytes)])
    let parts = answer.array ?? []
    switch (parts.first?.integer, parts.count) {
    case (1, 3): return .present(entries: Int(parts[1].integer ?? 0), parts[2].bytes.flatMap { RegistrationStamp($0) })
    case (0, 1): return .elsewhere
    case (-1, 2): return .unregistered(parts[1].bytes.flatMap { RegistrationStamp($0) })
    default: throw StoreError(.faulty, "what Redis has of the device cannot be read")
    }
  }

  /// Removes the presence if it is still this session's.
  static let leaveScript = RedisScript(file: "presence-leave")

  /// Removes the presence of a session that has ended. If the call fails, the presence stays until the device's next hello. Delivery
  /// records are dropped until then, and the entries stay in the mailbox.
  public func leave(_ token: String, _ presence: Presence) {
    begin(Self.leaveScript, token, presence)
    calls.command.append(keptMilliseconds)
    calls.send(over: shards.shard(ofDevice: token)) { _ in }
  }

  // MARK: The gap

  /// Removes a gap that the device was notified of, if neither the gap nor the session has changed.
  static let gapScript = RedisScript(file: "presence-gap")

  /// Removes a gap when the device has acknowledged a delivery that was sent after the gap. If the call fails, or more was evicted meanwhile, the next hello sends it again.
  public func told(_ gap: MailboxGap, _ token: String, _ presence: Presence) {
    begin(Self.gapScript, token, presence)
    calls.command.append(gap.bytes)
    calls.send(over: shards.shard(ofDevice: token)) { _ in }
  }
}
