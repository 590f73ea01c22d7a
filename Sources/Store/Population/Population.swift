import Notifications
import Redis

/// What is read of a Redis to find out how many devices and notifications there are: single keys, whoever they belong to. Loop-confined.
///
/// Each call says how many commands the server executes for it, those of scripts included. None of them changes anything.
public final class Population {
  private let shards: Shards

  /// Of these servers.
  public init(_ shards: Shards) { self.shards = shards }

  /// What lies under a key.
  public enum Key: Sendable, Hashable {
    /// The hash of the device with this token.
    case device(String)
    /// Its mailbox.
    case mailbox(String)
    /// All else.
    case other
  }

  /// How many keys there are, those included that have expired and were not removed yet. One command.
  public func keyCount() async throws(StoreError) -> Int64 { try await shards.common.answer("DBSIZE").integer ?? 0 }

  /// Keys from a place of the table on, and the place where it goes on: 0 behind the end. One command.
  ///
  /// - Parameters:
  ///   - place: 0 for the beginning, what a call before has answered, or any other: then it begins somewhere within the table.
  ///   - count: about how many keys are answered; of a table with many empty places fewer.
  public func scan(from place: UInt64, count: Int) async throws(StoreError) -> (next: UInt64, keys: [Key]) {
    let answer = try await shards.common.answer("SCAN", .text(String(place)), "COUNT", .integer(Int64(count)))
    guard let parts = answer.array, parts.count == 2, let next = parts[0].text.flatMap({ UInt64($0) }), let names = parts[1].array else {
      throw StoreError(.faulty, "Redis answered SCAN with something else")
    }
    return (next, names.map { name in name.text.map { key($0) } ?? .other })
  }

  private func key(_ name: String) -> Key {
    guard name.hasPrefix("d{") || name.hasPrefix("m{"), let end = name.firstIndex(of: "}") else { return .other }
    let token = String(name[name.index(after: end)...])
    // Whatever else begins like this was put there by somebody else, and so was what is named after no token.
    guard DeviceToken(token)?.text == token else { return .other }
    if name == shards.keys.device(token) { return .device(token) }
    return name == shards.keys.mailbox(token) ? .mailbox(token) : .other
  }

  /// A device as its hash has it.
  public struct Device: Sendable, Hashable {
    /// Whether it is registered; what is remembered of one that is no more has no owner.
    public var isRegistered: Bool
    /// Whether a session has it, or had it when its worker was killed.
    public var isConnected: Bool

    /// A device of its parts.
    public init(isRegistered: Bool, isConnected: Bool) { (self.isRegistered, self.isConnected) = (isRegistered, isConnected) }
  }

  /// Commands that `device` has executed.
  public static let deviceCommands = 1

  /// Looks at a device; nil where something else lies there.
  public func device(_ token: String) async throws(StoreError) -> Device? {
    do throws(StoreError) {
      let answer = try await shards.shard(ofDevice: token).answer("HMGET", .text(shards.keys.device(token)), "u", "p")
      guard let fields = answer.array, fields.count == 2 else { return nil }
      return Device(
        isRegistered: fields[0].bytes.flatMap { Owner($0) } != nil, isConnected: fields[1].bytes.flatMap { Presence($0) } != nil)
    } catch {
      if error.code == .faulty { return nil }
      throw error
    }
  }

  /// A mailbox as it stands.
  public struct Mailbox: Sendable, Hashable {
    /// What waits in it, including what has expired since.
    public var entries: Int
    /// When the oldest was published, in milliseconds since 1970; nil where it has none, or so many that it was not looked for.
    public var oldest: Int64?

    /// A mailbox of its parts.
    public init(entries: Int, oldest: Int64?) { (self.entries, self.oldest) = (entries, oldest) }
  }

  /// Arguments: a place of the table, about how many keys. Answers the place where it goes on, mailboxes, entries.
  static let waitingScript = RedisScript(
    """
    local page = redis.call('SCAN', ARGV[1], 'MATCH', 'm{*', 'COUNT', ARGV[2])
    local mailboxes, entries = 0, 0
    for _, name in ipairs(page[2]) do
      local count = redis.pcall('HLEN', name)
      if type(count) == 'number' then mailboxes, entries = mailboxes + 1, entries + count end
    end
    return {page[1], mailboxes, entries}
    """)

  /// Counts the mailboxes and what waits in them, key by key: for a Redis that nobody writes to, for a while that grows with its keys.
  public func waiting() async throws(StoreError) -> (mailboxes: Int64, entries: Int64) {
    var (place, mailboxes, entries) = ("0", Int64(0), Int64(0))
    repeat {
      let answer = try await shards.common.answer(Self.waitingScript, keys: [], arguments: [.text(place), "1000"])
      guard let parts = answer.array, parts.count == 3, let next = parts[0].text, let boxes = parts[1].integer, let found = parts[2].integer
      else { throw StoreError(.faulty, "Redis answered SCAN with something else") }
      (place, mailboxes, entries) = (next, mailboxes + boxes, entries + found)
    } while place != "0"
    return (mailboxes, entries)
  }

  /// Commands that `mailbox` has executed: the script, and the two that it calls.
  public static let mailboxCommands = 3

  /// How many entries a mailbox has, and the timestamp of the oldest one where they are few enough to look through.
  static let mailboxScript = RedisScript(file: PackageResources.mailbox_depth_lua)

  /// Looks at a mailbox; nil where something else lies there.
  public func mailbox(_ token: String) async throws(StoreError) -> Mailbox? {
    do throws(StoreError) {
      let answer = try await shards.shard(ofDevice: token).answer(
        Self.mailboxScript, keys: [.text(shards.keys.mailbox(token))], arguments: [])
      guard let parts = answer.array, let count = parts.first?.integer, count >= 0 else { return nil }
      return Mailbox(entries: Int(count), oldest: parts.count > 1 ? parts[1].integer.map { Timestamp.bounded($0) } : nil)
    } catch {
      if error.code == .faulty { return nil }
      throw error
    }
  }
}
