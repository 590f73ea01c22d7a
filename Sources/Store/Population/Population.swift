import Notifications
import Redis

/// Samples of keys that show how many devices and notifications Redis has. Loop-confined.
///
/// Each call says how many commands it costs the server, including those of scripts. None changes anything.
public final class Population {
  private let shards: Shards

  /// Makes it for these servers.
  public init(_ shards: Shards) { self.shards = shards }

  /// The kinds of keys.
  public enum Key: Sendable, Hashable {
    /// The hash of the device with this token.
    case device(String)
    /// Its mailbox.
    case mailbox(String)
    /// Any other key.
    case other
  }

  /// Counts all keys, including expired ones that Redis has not removed yet. One command.
  public func keyCount() async throws(StoreError) -> Int64 { try await shards.common.answer("DBSIZE").integer ?? 0 }

  /// Scans some keys from a cursor on, and answers the next cursor. 0 at the end. One command.
  ///
  /// - Parameters:
  ///   - place: 0, a cursor of an earlier answer, or any number, which begins somewhere in the table.
  ///   - count: about how many keys to answer; fewer if the table is sparse.
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
    // Another key with such a beginning was not written by Carillon.
    guard DeviceToken(token)?.text == token else { return .other }
    if name == shards.keys.device(token) { return .device(token) }
    return name == shards.keys.mailbox(token) ? .mailbox(token) : .other
  }

  /// A device as its hash has it.
  public struct Device: Sendable, Hashable {
    /// Whether it is registered. The memory of an unregistered device has no owner.
    public var isRegistered: Bool
    /// Whether a session has it; out of date if its worker was killed.
    public var isConnected: Bool
  }

  /// Commands that `device` costs the server.
  public static let deviceCommands = 1

  /// Reads a device; nil if the key has another type.
  public func device(_ token: String) async throws(StoreError) -> Device? {
    do throws(StoreError) {
      let answer = try await shards.shard(ofDevice: token).answer("HMGET", .text(shards.keys.device(token)), "u", "p")
      guard let fields = answer.array, fields.count == 2 else { return nil }
      return Device(
        isRegistered: fields[0].bytes.flatMap { Owner(field: $0) } != nil, isConnected: fields[1].bytes.flatMap { Presence($0) } != nil)
    } catch {
      if error.code == .faulty { return nil }
      throw error
    }
  }

  /// The size of a mailbox.
  public struct Mailbox: Sendable, Hashable {
    /// Its entries, including expired ones.
    public var entries: Int
    /// When the oldest was published, in milliseconds since 1970; nil if it is empty, or too large to search.
    public var oldest: Int64?
  }

  /// Commands that `mailbox` costs the server: the script, and the two that it calls.
  public static let mailboxCommands = 3

  /// The size of a mailbox, and the timestamp of the oldest entry if the mailbox is small enough to search.
  static let mailboxScript = RedisScript(file: "mailbox-depth")

  /// Reads a mailbox; nil if the key has another type.
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
