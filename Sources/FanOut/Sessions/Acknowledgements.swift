import EventLoop
import Kafka
import Notifications
import Store
import Worker

/// What acknowledgements become: an event each, and when Kafka has it, the deletion from the mailbox. Loop-confined.
///
/// Everything here may be forgotten at any moment: the entry is still in the mailbox then, comes again, and the device knows it.
final class Acknowledgements {
  /// Why a delivery ended, where the type of its event does not say all.
  enum Reason {
    /// The event tells this word or sentence.
    case told(StaticString)
    /// Its payload was changed while it waited.
    case damagedPayload
    /// Its application was stopped, for what a person wrote: empty where nothing was written.
    case stopped(String)
  }

  /// One acknowledged delivery on its way.
  struct Acknowledgement {
    let session: Session
    let token: String
    let number: UInt64
    let revision: Revision
    let head: [UInt8]
    let type: EventType
    let reason: Reason?
  }

  private let events: EventProducer
  private let mailboxes: Mailboxes
  private var slots = SlotTable<Acknowledgement>()
  /// What Kafka's queue had no room for.
  private var unsent: [Int] = []
  /// How many may be on their way: about 400 bytes each.
  private let maximum: Int

  init(_ events: EventProducer, _ mailboxes: Mailboxes, maximum: Int = 250_000) {
    self.events = events
    self.mailboxes = mailboxes
    self.maximum = maximum
  }

  /// How many are on their way.
  var count: Int { slots.count }

  /// Emits what became of a delivery; false when too many are on their way: it stays in the mailbox, and comes again.
  func add(_ acknowledgement: Acknowledgement) -> Bool {
    guard count < maximum else { return false }
    let slot = slots.add(acknowledgement)
    if !emit(acknowledgement, slot) { unsent.append(slot) }
    return true
  }

  /// False when Kafka's queue has no room.
  private func emit(_ acknowledgement: Acknowledgement, _ slot: Int) -> Bool {
    var token = acknowledgement.token
    return acknowledgement.head.withUnsafeBytes { head in
      token.withUTF8 { token in
        // Heads are copies of entries that were read before.
        guard let entry = DeliveryEntryView(head) else { return true }
        let device = UnsafeRawBufferPointer(token)
        var facts = EventFacts(acknowledgement.type, of: entry, device: device, revision: acknowledgement.revision)
        switch acknowledgement.reason {
        case nil: break
        case .told(let reason): facts.details = .reason(reason)
        case .damagedPayload: facts.details = .rejected(Self.damage)
        case .stopped(var reason):
          return reason.withUTF8 { reason in
            facts.details = .stopped(UnsafeRawBufferPointer(reason))
            return events.emit(facts, key: device, for: .acknowledgement(slot))
          }
        }
        return events.emit(facts, key: device, for: .acknowledgement(slot))
      }
    }
  }

  private static let damage = Rejection(
    .internalServerError, field: "payload", rule: "The payload was changed while it waited for its device; publish the request again.")

  /// Kafka's queue may have room again; what it has none for waits on.
  func emitUnsent() {
    while let slot = unsent.last {
      if let acknowledgement = slots[slot], !emit(acknowledgement, slot) { return }
      unsent.removeLast()
    }
  }

  /// Nothing is waited for any more: what Kafka has not said that it has stays in the mailboxes.
  func close() {
    slots = SlotTable()
    unsent = []
  }

  /// Reports of events: what Kafka has is deleted from the mailboxes, one call for each device.
  func reported(_ reports: [(slot: Int, failed: Bool)]) {
    var done: [Acknowledgement] = []
    done.reserveCapacity(reports.count)
    for (slot, failed) in reports {
      if failed {
        if slots[slot] != nil { unsent.append(slot) }
      } else if let acknowledgement = slots.take(slot) {
        done.append(acknowledgement)
      }
    }
    // Those of a session one behind the other; what is sorted is small.
    let order = done.indices.map { (session: ObjectIdentifier(done[$0].session), place: $0) }.sorted { $0 < $1 }
    var rest = order[...]
    while let session = rest.first?.session {
      let places = rest.prefix { $0.session == session }
      rest = rest.dropFirst(places.count)
      delete(places.map { done[$0.place] })
    }
  }

  /// Deletes entries of one session's mailbox.
  ///
  /// When it fails they are paged again by a later session, and dropped by the device, which knows them.
  private func delete(_ entries: [Acknowledgement]) {
    let (session, numbers) = (entries[0].session, entries.map(\.number))
    mailboxes.delete(entries.map(\.revision), of: entries[0].token) { _ in session.open?.deleted(numbers) }
  }
}
