import Notifications
import Redis

/// Counts the devices and notifications that Redis has. It changes nothing.
public final class Population {
  private let shards: Shards

  /// Makes it for these servers.
  public init(_ shards: Shards) { self.shards = shards }

  /// Counts all keys, including expired ones that Redis has not removed yet.
  public func keyCount() async throws(StoreError) -> Int64 { try await shards.common.answer("DBSIZE").integer ?? 0 }

  /// Numbers of some or all keys.
  public struct Counts: Sendable, Hashable {
    /// The keys that were counted.
    public var keys: Int64 = 0
    /// Registered devices. The memory of an unregistered one is no device.
    public var devices: Int64 = 0
    /// Devices that a session has, including those whose worker was killed.
    public var connected: Int64 = 0
    /// Mailboxes with entries.
    public var mailboxes: Int64 = 0
    /// Their entries, including expired ones.
    public var entries: Int64 = 0
    /// Whether the numbers are counted, and not scaled up.
    public var isExact = true

    /// No keys.
    public init() {}

    /// The sum of both.
    public static func + (a: Counts, b: Counts) -> Counts {
      var sum = Counts()
      for number in numbers { sum[keyPath: number] = a[keyPath: number] + b[keyPath: number] }
      return sum
    }

    /// An estimate for this number of keys, of which these are a part.
    public func scaled(toKeys all: Int64) -> Counts {
      var scaled = self
      scaled.isExact = false
      guard keys > 0, all > keys else { return scaled }
      for number in Self.numbers {
        scaled[keyPath: number] = Int64(exactly: (Double(self[keyPath: number]) * Double(all) / Double(keys)).rounded()) ?? .max
      }
      return scaled
    }

    fileprivate static var numbers: [WritableKeyPath<Counts, Int64>] { [\.keys, \.devices, \.connected, \.mailboxes, \.entries] }
  }

  /// Arguments: a cursor, about how many keys. Answers the next cursor, keys, devices, connected ones, mailboxes, entries.
  static let pageScript = RedisScript(
    """
    local page = redis.call('SCAN', ARGV[1], 'COUNT', ARGV[2])
    local devices, connected, mailboxes, entries = 0, 0, 0, 0
    for _, name in ipairs(page[2]) do
      local kind = string.sub(name, 1, 2)
      if kind == 'd{' then
        local device = redis.pcall('HMGET', name, 'u', 'p')
        if device[1] then
          devices = devices + 1
          if device[2] and #device[2] == 12 then connected = connected + 1 end
        end
      elseif kind == 'm{' then
        local count = redis.pcall('HLEN', name)
        if type(count) == 'number' then mailboxes, entries = mailboxes + 1, entries + count end
      end
    end
    return {page[1], #page[2], devices, connected, mailboxes, entries}
    """)

  /// Counts the keys of a page. Its one command executes about three for each key.
  ///
  /// - Parameters:
  ///   - place: 0, or the `next` of an earlier page. 0 again after the last page.
  ///   - keys: about how many to count.
  public func page(from place: UInt64, keys: Int64) async throws(StoreError) -> (next: UInt64, counts: Counts) {
    let answer = try await shards.common.answer(Self.pageScript, keys: [], arguments: [.text(String(place)), .integer(keys)])
    guard let parts = answer.array, parts.count == 6, let next = parts[0].text.flatMap({ UInt64($0) }) else {
      throw StoreError(.faulty, "Redis answered SCAN with something else")
    }
    var counts = Counts()
    for (number, part) in zip(Counts.numbers, parts.dropFirst()) { counts[keyPath: number] = part.integer ?? 0 }
    return (next, counts)
  }

  /// The size of a mailbox.
  public struct Mailbox: Sendable, Hashable {
    /// Its entries, including expired ones.
    public var entries: Int
    /// When the oldest was published, in milliseconds since 1970; nil if it is empty, or too large to search.
    public var oldest: Int64?
  }

  /// The size of a mailbox, and the timestamp of the oldest entry if the mailbox is small enough to search.
  static let mailboxScript = RedisScript(file: "mailbox-depth")

  /// Reads a mailbox; nil if the key has another type.
  func mailbox(_ token: String) async throws(StoreError) -> Mailbox? {
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
