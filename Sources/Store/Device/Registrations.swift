public import Notifications
import Redis

/// How a registration that Kafka has taken gets into Redis, by the lane that has published it and by the worker that reads `devices`.
/// Loop-confined.
///
/// The lane has mostly done so before the worker, and then nothing changes; a lane that was killed between Kafka and Redis has not, nor has
/// one whose writing Redis has lost.
public final class Registrations {
  private let shards: Shards
  private let recipients: Recipients
  private let calls = Calls()
  private let rememberedMilliseconds: Int64

  /// - Parameter rememberedMilliseconds: how long an unregistered device is remembered.
  public init(_ shards: Shards, _ recipients: Recipients, rememberedMilliseconds: Int64) {
    (self.shards, self.recipients, self.rememberedMilliseconds) = (shards, recipients, rememberedMilliseconds)
  }

  /// Applies a registration, unless one from a later record stands.
  ///
  /// Keys: the device's hash, its mailbox, the markers of its bucket. Arguments: owner 24 or empty for an unregistration, registration
  /// 20 (see `Keys`), milliseconds that an unregistered device is remembered, the key of the person's set that it belongs to or empty,
  /// its locale or empty.
  /// Answers `{1, former owner, former set}`, `{0}` where a later record stands, or `{-2}` where Redis has lost the bucket. For the
  /// same owner the earliest `since` stands, also that of an earlier record that comes later. What cannot be read of the device counts as
  /// nothing, and is written over.
  static let script = RedisScript(
    """
    if redis.call('EXISTS', KEYS[3]) == 0 then return {-2} end
    local OWNER, STAMP, LARGEST = 24, 20, 2 ^ 53
    local s = redis.pcall('HMGET', KEYS[1], 'u', 'r', 'a')
    if s.err then
      if not string.find(s.err, 'WRONGTYPE', 1, true) then return s end
      redis.call('DEL', KEYS[1])
      s = {}
    end
    local owner, former = ARGV[1], s[1] and #s[1] == OWNER and s[1] or ''
    local function same(a, b) return #a == #b and string.sub(a, 1, 8) == string.sub(b, 1, 8) and string.sub(a, 17) == string.sub(b, 17) end
    local function since(a) return struct.unpack('>I8', a, 9) end
    if s[2] and #s[2] == STAMP then
      local offset = struct.unpack('>I8', s[2], 13)
      local this = struct.unpack('>I8', ARGV[2], 13)
      if offset > this and offset < LARGEST then
        if owner ~= '' and same(owner, former) and since(owner) < since(former) then redis.call('HSET', KEYS[1], 'u', owner) end
        return {0}
      end
    end
    if owner == '' then
      redis.call('HSET', KEYS[1], 'r', ARGV[2])
      redis.call('HDEL', KEYS[1], 'u', 'a', 'p', 'g', 'l')
      redis.call('PEXPIRE', KEYS[1], ARGV[3])
      redis.call('PEXPIRE', KEYS[2], ARGV[3])
      return {1, former, s[3] or ''}
    end
    if same(owner, former) and since(former) < since(owner) then owner = former end
    redis.call('HSET', KEYS[1], 'u', owner, 'r', ARGV[2], 'a', ARGV[4])
    if ARGV[5] ~= '' then redis.call('HSET', KEYS[1], 'l', ARGV[5]) else redis.call('HDEL', KEYS[1], 'l') end
    redis.call('PERSIST', KEYS[1])
    return {1, former, s[3] or ''}
    """)

  /// A record of `devices`.
  public struct Record: Sendable {
    /// The device.
    public let token: String
    /// Nil: the device is registered no more.
    public let registration: Registration?
    /// Where the record lies.
    public let partition: Int32
    /// Where the record lies in the partition.
    public let offset: Int64

    /// A record from its parts.
    public init(token: String, _ registration: Registration?, partition: Int32, offset: Int64) {
      (self.token, self.registration, self.partition, self.offset) = (token, registration, partition, offset)
    }

    /// Which record it is, as the device's hash says it.
    public var stamp: RegistrationStamp {
      RegistrationStamp(digest: registration?.digest ?? 0, partition: partition, offset: offset)
    }
  }

  /// What came of a record.
  public enum Outcome: Sendable {
    /// It stands now, with the person's sets; whose the device was before.
    case applied(former: Owner?)
    /// A later one stands.
    case superseded
  }

  /// Applies a record: to the device's hash, and then to the sets of its person and of its former one.
  public func apply(_ record: Record, _ then: @escaping (Result<Outcome, StoreError>) -> Void) {
    let (keys, token) = (shards.keys, record.token)
    let set = record.registration.flatMap { registration in
      registration.user.map { keys.recipients(user: $0, application: registration.application) }
    }
    calls.command.begin(Self.script, keys: 3)
    calls.command.append(keys.device(token))
    calls.command.append(keys.mailbox(token))
    calls.command.append(keys.guardKey(ofDevice: token))
    calls.command.append(record.registration.map { Owner($0).bytes } ?? [])
    calls.command.append(record.stamp.bytes)
    calls.command.append(rememberedMilliseconds)
    calls.command.append(set ?? "")
    calls.command.append(record.registration?.locale ?? "")
    calls.send(over: shards.shard(ofDevice: token)) { [self] answer in
      switch answer {
      case .failure(let error): then(.failure(error.about(keys.device(token))))
      case .success(let reply):
        guard reply[0]?.integer == 1 else { return then(.success(.superseded)) }
        let outcome = Outcome.applied(former: reply[1]?.bytes.flatMap { Owner($0) })
        move(token, from: reply[2]?.text ?? "", to: set ?? "") { error in then(error.map { .failure($0) } ?? .success(outcome)) }
      }
    }
  }

  /// The same from a task on the loop.
  public func apply(_ record: Record) async throws(StoreError) -> Outcome {
    try await withCheckedContinuation { continuation in apply(record) { continuation.resume(returning: $0) } }.get()
  }

  /// Puts a device into a person's set and takes it out of another's; either may be none.
  private func move(_ token: String, from former: String, to set: String, _ then: @escaping (StoreError?) -> Void) {
    let leave = { [recipients] in
      // What is no key of a person's set was put there by somebody else.
      guard former.utf8.starts(with: "u{".utf8), former != set else { return then(nil) }
      recipients.remove(token, from: former) { then($0?.code == .faulty ? nil : $0) }
    }
    if set.isEmpty { return leave() }
    recipients.add(token, to: set) { error in
      if let error { then(error) } else { leave() }
    }
  }
}
