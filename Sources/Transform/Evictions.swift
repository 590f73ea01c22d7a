import Notifications
import Redis
import Worker

/// Entries that a full mailbox has too many: each is deleted when Kafka has its `evicted` event. One eviction per device at a time, one
/// after the other until the mailbox is within its bound.
///
/// Until then they stay in the mailbox, and a later request for the device finds them again; so an eviction may be forgotten at any
/// moment.
struct Evictions: ~Copyable {
  struct Eviction {
    let token: [UInt8]
    /// Oldest first.
    let revisions: [[UInt8]]
    /// Events that are not yet durable.
    var pending = 0
    var failed = false
  }

  private var places = NumberedPlaces<Eviction>()
  private var devices: Set<[UInt8]> = []
  private var command = RedisCommand()
  private let keys: RedisKeys
  private let bound: Int
  /// Devices whose mailboxes are being emptied at a time: more come again with their next request.
  private static let most = 256
  /// Entries to one eviction.
  static let longest = 64

  init(_ settings: TransformSettings) { (keys, bound) = (settings.keys, settings.mailboxBound) }

  /// Begins one; nothing when the device has one already, or too many do.
  ///
  /// - Parameter say: says of one entry that it is evicted, and answers whether a report of that will come.
  mutating func begin(
    _ token: UnsafeRawBufferPointer, _ surplus: RedisReplyView,
    _ say: (_ number: Int, _ revision: UnsafeRawBufferPointer, _ entry: DeliveryEntryView) -> Bool
  ) {
    guard surplus.count > 0 else { return }
    let device = Array(token)
    guard devices.count < Self.most, !devices.contains(device) else { return }
    var told: [(revision: UnsafeRawBufferPointer, entry: DeliveryEntryView)] = []
    for index in 0..<min(surplus.count, Self.longest) {
      guard let bytes = surplus[index]?.bytes, bytes.count > Revision.byteCount else { continue }
      guard let entry = DeliveryEntryView(UnsafeRawBufferPointer(rebasing: bytes.dropFirst(Revision.byteCount))) else { continue }
      told.append((UnsafeRawBufferPointer(rebasing: bytes.prefix(Revision.byteCount)), entry))
    }
    let number = places.add(Eviction(token: device, revisions: told.map { Array($0.revision) }))
    let pending = told.count { say(number, $0.revision, $0.entry) }
    guard pending > 0 else { return _ = ended(number) }
    devices.insert(device)
    places.update(number) {
      $0.pending = pending
      $0.failed = pending < told.count
    }
  }

  /// One of its events is durable, or is not; after the last one the entries are deleted.
  mutating func reported(_ number: Int, failed: Bool, send: (borrowing RedisCommand) -> Bool) {
    places.update(number) {
      $0.pending -= 1
      if failed { $0.failed = true }
    }
    guard let eviction = places[number], eviction.pending == 0 else { return }
    if eviction.failed { return _ = ended(number) }
    let token = String(decoding: eviction.token, as: UTF8.self)
    command.begin(JudgeScript.evict, keys: 2)
    command.append(keys.device(token))
    command.append(keys.mailbox(token))
    command.append(bound)
    for revision in eviction.revisions { command.append(revision) }
    if !send(command) { _ = ended(number) }
  }

  /// It is over: the token of its device.
  mutating func ended(_ number: Int) -> [UInt8]? {
    guard let eviction = places.take(number) else { return nil }
    devices.remove(eviction.token)
    return eviction.token
  }
}
