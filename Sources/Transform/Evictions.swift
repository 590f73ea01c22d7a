import Notifications
import Redis
import Worker

/// Entries that a full mailbox has too many: each is deleted when Kafka has its `evicted` event. One eviction per device at a time.
///
/// Until then they stay in the mailbox, and the next request for the device finds them again; so an eviction may be forgotten at any
/// moment.
struct Evictions: ~Copyable {
  struct Eviction {
    /// Its place.
    let number: Int
    let token: [UInt8]
    /// Oldest first.
    let revisions: [[UInt8]]
    let entries: [[UInt8]]
    var pending: Int
    var failed = false
  }

  private var places: [Eviction?] = []
  private var devices: Set<[UInt8]> = []
  private var command = RedisCommand()
  private let keys: RedisKeys
  /// Devices whose mailboxes are being emptied at a time: more come again with their next request.
  private static let most = 256
  /// Entries to one eviction.
  static let longest = 64

  init(_ keys: RedisKeys) { self.keys = keys }

  /// Begins one; nil when the device has one already, or too many do.
  mutating func begin(_ token: UnsafeRawBufferPointer, _ surplus: RedisReplyView) -> Eviction? {
    let device = Array(token)
    guard devices.count < Self.most, !devices.contains(device) else { return nil }
    var revisions: [[UInt8]] = []
    var entries: [[UInt8]] = []
    for index in 0..<min(surplus.count, Self.longest) {
      guard let bytes = surplus[index]?.bytes, bytes.count > Revision.byteCount else { continue }
      revisions.append(Array(bytes.prefix(Revision.byteCount)))
      entries.append(Array(bytes.dropFirst(Revision.byteCount)))
    }
    guard !entries.isEmpty else { return nil }
    devices.insert(device)
    let number = places.firstIndex { $0 == nil } ?? places.count
    if number == places.count { places.append(nil) }
    let eviction = Eviction(number: number, token: device, revisions: revisions, entries: entries, pending: entries.count)
    places[number] = eviction
    return eviction
  }

  /// One of its events is durable, or is not; after the last one the entries are deleted.
  mutating func reported(_ number: Int, failed: Bool, send: (borrowing RedisCommand) -> Bool) {
    guard number < places.count, places[number] != nil else { return }
    places[number]?.pending -= 1
    if failed { places[number]?.failed = true }
    guard let eviction = places[number], eviction.pending == 0 else { return }
    if eviction.failed { return ended(number) }
    let token = String(decoding: eviction.token, as: UTF8.self)
    command.begin(JudgeScript.evict, keys: 2)
    command.append(keys.device(token))
    command.append(keys.mailbox(token))
    for revision in eviction.revisions { command.append(revision) }
    if !send(command) { ended(number) }
  }

  /// It is over.
  mutating func ended(_ number: Int) {
    guard number < places.count, let eviction = places[number] else { return }
    devices.remove(eviction.token)
    places[number] = nil
  }
}
