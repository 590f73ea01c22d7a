import EventLoop
import Notifications
import Store
import Worker

/// Entries that a full mailbox has too many, or that a removal of all cancels: each is deleted when Kafka has its event. One eviction per
/// device at a time, one after the other until nothing is left to end.
///
/// Until then they stay in the mailbox. A later request for the device finds an overflow again, and its session cancels what a removal has
/// left; so an eviction may be forgotten at any moment.
struct Evictions: ~Copyable {
  /// How entries end.
  enum Ending {
    /// The mailbox has more than it may keep.
    case evicted
    /// The removal of all with this apns-id is newer.
    case canceled(by: NotificationID)
  }

  struct Eviction {
    let token: [UInt8]
    let ending: Ending
    /// Oldest first.
    let revisions: [Revision]
    /// Events that are not yet durable.
    var pending = 0
    var failed = false
  }

  private var slots = SlotTable<Eviction>()
  private var devices: Set<[UInt8]> = []
  /// Devices whose mailboxes are being emptied at a time: more come again with their next request.
  private static let maximum = 256

  /// Begins one; nothing when the device has one already, or too many do.
  ///
  /// - Parameters:
  ///   - overflow: the entries that are to end, oldest first.
  ///   - emit: emits that an entry has ended, and answers whether a report of that will come.
  /// - Returns: the fields that cannot be read, of which nothing can be emitted.
  mutating func begin(
    _ token: UnsafeRawBufferPointer, _ overflow: MailboxEntries, _ ending: Ending,
    _ emit: (_ number: Int, _ revision: Revision, _ entry: DeliveryEntryView) -> Bool
  ) -> [[UInt8]] {
    guard overflow.count > 0 else { return [] }
    let device = Array(token)
    guard devices.count < Self.maximum, !devices.contains(device) else { return [] }
    var entries: [(revision: Revision, entry: DeliveryEntryView)] = []
    let unreadable = overflow.forEach { revision, entry, _ in entries.append((revision, entry)) }
    let number = slots.add(Eviction(token: device, ending: ending, revisions: entries.map(\.revision)))
    let pending = entries.count { emit(number, $0.revision, $0.entry) }
    if pending == 0 {
      _ = ended(number)
    } else {
      devices.insert(device)
      slots.update(number) {
        $0.pending = pending
        $0.failed = pending < entries.count
      }
    }
    return unreadable
  }

  /// One of its events is durable, or is not; answers the eviction whose entries are to be deleted now.
  mutating func reported(_ number: Int, failed: Bool) -> Eviction? {
    slots.update(number) {
      $0.pending -= 1
      if failed { $0.failed = true }
    }
    guard let eviction = slots[number], eviction.pending == 0 else { return nil }
    guard eviction.failed else { return eviction }
    _ = ended(number)
    return nil
  }

  /// It is over: the token of its device.
  mutating func ended(_ number: Int) -> [UInt8]? {
    guard let eviction = slots.take(number) else { return nil }
    devices.remove(eviction.token)
    return eviction.token
  }
}
