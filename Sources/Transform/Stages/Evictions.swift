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
    let revisions: [Revision]
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
  /// - Parameters:
  ///   - surplus: fields and their values, one after the other.
  ///   - say: says of one entry that it is evicted, and answers whether a report of that will come.
  /// - Returns: the fields that cannot be read, of which there is nothing to say.
  mutating func begin(
    _ token: UnsafeRawBufferPointer, _ surplus: RedisReplyView,
    _ say: (_ number: Int, _ revision: Revision, _ entry: DeliveryEntryView) -> Bool
  ) -> [[UInt8]] {
    guard surplus.count > 0 else { return [] }
    let device = Array(token)
    guard devices.count < Self.most, !devices.contains(device) else { return [] }
    var told: [(revision: Revision, entry: DeliveryEntryView)] = []
    var unreadable: [[UInt8]] = []
    for index in stride(from: 0, to: min(surplus.count, 2 * Self.longest) - 1, by: 2) {
      guard let field = surplus[index]?.bytes, let bytes = surplus[index + 1]?.bytes else { continue }
      if let revision = Revision(bytes: field), let entry = DeliveryEntryView(kept: bytes) {
        told.append((revision, entry))
      } else {
        unreadable.append(Array(field))
      }
    }
    let number = places.add(Eviction(token: device, revisions: told.map(\.revision)))
    let pending = told.count { say(number, $0.revision, $0.entry) }
    if pending == 0 {
      _ = ended(number)
    } else {
      devices.insert(device)
      places.update(number) {
        $0.pending = pending
        $0.failed = pending < told.count
      }
    }
    return unreadable
  }

  /// Removes fields that cannot be read.
  mutating func remove(_ fields: [[UInt8]], of mailbox: String, send: (borrowing RedisCommand) -> Void) {
    command.begin("HDEL")
    command.append(mailbox)
    for field in fields { command.append(field) }
    send(command)
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
    for revision in eviction.revisions { revision.withBytes { command.append($0) } }
    if !send(command) { _ = ended(number) }
  }

  /// It is over: the token of its device.
  mutating func ended(_ number: Int) -> [UInt8]? {
    guard let eviction = places.take(number) else { return nil }
    devices.remove(eviction.token)
    return eviction.token
  }
}
