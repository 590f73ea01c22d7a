import EventLoop
import Notifications
import Store

/// The overflow of full mailboxes, and entries that a removal of all cancels. Each is deleted when Kafka has its event.
///
/// Each device has one eviction at a time; the next follows until no entry is left to end. Until then the entries stay in the mailbox. An
/// eviction may be forgotten at any moment: a later request for the device finds an overflow again, and the device's session cancels the
/// entries that a removal has left. Since that may come late, a cancellation waits where there is no place for it.
struct Evictions: ~Copyable {
  /// How entries end.
  enum Ending {
    /// The mailbox has more entries than it may keep.
    case evicted
    /// The removal of all with this apns-id is newer.
    case canceled(by: NotificationID)
  }

  struct Eviction {
    let token: [UInt8]
    let ending: Ending
    /// Oldest first; none while the first are asked for.
    let revisions: [Revision]
    /// Events that are not yet durable.
    var pending = 0
    var failed = false
  }

  private var slots = SlotTable<Eviction>()
  private var devices: Set<[UInt8]> = []
  /// Events of all evictions that are not yet durable.
  private var pending = 0
  /// Cancellations without a place, oldest first, each device once.
  private var waiting: ArraySlice<(device: [UInt8], ending: Ending)> = []
  private var waitingDevices: Set<[UInt8]> = []
  /// Maximum number of devices with an eviction at a time.
  static let maximum = 256
  /// Maximum number of cancellations that wait, about 3 MB. The devices' sessions cancel what further ones would.
  static let waitingMaximum = 16_384
  /// No eviction begins or goes on with so many events that are not yet durable. Each may add a thousand: what the producer holds besides, the
  /// outcomes of requests, is to have most of its room.
  private static let pendingMaximum = 16_384

  /// Whether no more evictions may begin now.
  private var isFull: Bool { devices.count >= Self.maximum || pending >= Self.pendingMaximum }

  /// Begins an eviction whose entries are yet to be read; nil if the device has one already, or too many devices have one.
  mutating func begin(_ token: UnsafeRawBufferPointer, _ ending: Ending) -> Int? {
    let device = Array(token)
    guard !isFull, devices.insert(device).inserted else {
      wait(device, ending)
      return nil
    }
    return slots.add(Eviction(token: device, ending: ending, revisions: []))
  }

  /// Lets a device wait for its turn, unless it is an overflow, which a later request finds again.
  mutating func wait(_ device: [UInt8], _ ending: Ending) {
    guard case .canceled = ending, waiting.count < Self.waitingMaximum, waitingDevices.insert(device).inserted else { return }
    waiting.append((device, ending))
  }

  /// Begins the oldest cancellation that waits, if there is a place for it. Its entries are yet to be read.
  mutating func next() -> (number: Int, device: [UInt8], ending: Ending)? {
    guard !isFull, let first = waiting.first, devices.insert(first.device).inserted else { return nil }
    waiting.removeFirst()
    waitingDevices.remove(first.device)
    return (slots.add(Eviction(token: first.device, ending: first.ending, revisions: [])), first.device, first.ending)
  }

  /// Begins an eviction of entries, unless the device has one already, or too many devices have one.
  ///
  /// - Parameters:
  ///   - overflow: the entries to end, oldest first.
  ///   - emit: emits that an entry has ended, and returns whether a report of that will come.
  /// - Returns: unreadable fields, for which nothing can be emitted.
  mutating func begin(
    _ token: UnsafeRawBufferPointer, _ overflow: MailboxEntries, _ ending: Ending,
    _ emit: (_ number: Int, _ revision: Revision, _ entry: DeliveryEntryView) -> Bool
  ) -> [[UInt8]] {
    guard overflow.count > 0 else { return [] }
    let device = Array(token)
    guard !isFull, !devices.contains(device) else {
      wait(device, ending)
      return []
    }
    var entries: [(revision: Revision, entry: DeliveryEntryView)] = []
    let unreadable = overflow.forEach { revision, entry, _ in entries.append((revision, entry)) }
    let number = slots.add(Eviction(token: device, ending: ending, revisions: entries.map(\.revision)))
    let pending = entries.count { emit(number, $0.revision, $0.entry) }
    if pending == 0 {
      _ = ended(number)
    } else {
      devices.insert(device)
      self.pending += pending
      slots.update(number) {
        $0.pending = pending
        $0.failed = pending < entries.count
      }
    }
    return unreadable
  }

  /// One of an eviction's events is durable, or is not. Returns the eviction if its entries can be deleted now.
  mutating func reported(_ number: Int, failed: Bool) -> Eviction? {
    slots.update(number) {
      $0.pending -= 1
      if failed { $0.failed = true }
    }
    pending -= 1
    guard let eviction = slots[number], eviction.pending == 0 else { return nil }
    guard eviction.failed else { return eviction }
    _ = ended(number)
    return nil
  }

  /// Ends an eviction. Returns the token of its device.
  mutating func ended(_ number: Int) -> [UInt8]? {
    guard let eviction = slots.take(number) else { return nil }
    devices.remove(eviction.token)
    return eviction.token
  }
}
