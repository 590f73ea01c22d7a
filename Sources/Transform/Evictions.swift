import Notifications
import Redis
import Worker

/// Entries that a full mailbox has too many: each is deleted when Kafka has its `evicted` event. One eviction per device at a time.
///
/// Until then they stay in the mailbox, and the next request for the device finds them again; so an eviction may be forgotten at any
/// moment.
struct Evictions: ~Copyable {
  struct Eviction {
    let token: [UInt8]
    /// Oldest first.
    let revisions: [[UInt8]]
    let entries: [[UInt8]]
    var pending: Int
    var failed = false
  }

  private var places = NumberedPlaces<Eviction>()
  private var devices: Set<[UInt8]> = []
  private var command = RedisCommand()
  private let keys: RedisKeys
  /// Devices whose mailboxes are being emptied at a time: more come again with their next request.
  private static let most = 256
  /// Entries to one eviction.
  static let longest = 64

  init(_ keys: RedisKeys) { self.keys = keys }

  /// Begins one, and gives it a number; nil when the device has one already, or too many do.
  mutating func begin(_ token: UnsafeRawBufferPointer, _ surplus: RedisReplyView) -> (number: Int, eviction: Eviction)? {
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
    let eviction = Eviction(token: device, revisions: revisions, entries: entries, pending: entries.count)
    return (places.add(eviction), eviction)
  }

  /// One of its events is durable, or is not; after the last one the entries are deleted.
  mutating func reported(_ number: Int, failed: Bool, send: (borrowing RedisCommand) -> Bool) {
    places.update(number) {
      $0.pending -= 1
      if failed { $0.failed = true }
    }
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
    if let eviction = places.take(number) { devices.remove(eviction.token) }
  }
}
