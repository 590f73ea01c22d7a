import EventLoop
import Kafka
import Notifications
import Store

/// The outcome of one delivery.
struct DeliveryOutcome {
  /// The reason in its event.
  enum Reason {
    /// This word or sentence.
    case told(StaticString)
    /// The payload was changed in the mailbox.
    case damagedPayload
    /// The application was stopped, for the reason that a person gave, or none if it is empty.
    case stopped(String)
    /// The removal of all with this apns-id is newer.
    case removed(by: NotificationID)
  }

  let session: Session
  let token: String
  let number: UInt64
  let revision: Revision
  let head: [UInt8]
  let type: Outcome
  let reason: Reason?
}

/// Emits the outcomes of deliveries, and deletes each entry from its mailbox when Kafka has the event.
///
/// All of it may be lost at any moment: the entry is still in the mailbox then. A later session sends it again, and its device drops it.
/// The same session does not: it remembers what Redis could not delete.
final class PendingOutcomes {
  private let events: EventProducer
  private let mailboxes: Mailboxes
  private var slots = SlotTable<DeliveryOutcome>()
  /// The slots for whose events Kafka's queue had no room.
  private var unsent: [Int] = []
  /// The largest count; an outcome takes about 400 bytes.
  private static let maximum = 250_000

  init(_ events: EventProducer, _ mailboxes: Mailboxes) {
    self.events = events
    self.mailboxes = mailboxes
  }

  /// How many events are on their way to Kafka.
  var count: Int { slots.count }

  /// Emits an outcome; false when too many are pending: its entry stays in the mailbox, and a later page has it again.
  func add(_ outcome: DeliveryOutcome) -> Bool {
    guard count < Self.maximum else { return false }
    let slot = slots.add(outcome)
    if !emit(outcome, slot) { unsent.append(slot) }
    return true
  }

  /// False when Kafka's queue has no room.
  private func emit(_ outcome: DeliveryOutcome, _ slot: Int) -> Bool {
    var token = outcome.token
    return outcome.head.withUnsafeBytes { head in
      token.withUTF8 { token in
        // Heads are copies of entries that were read before.
        guard let entry = DeliveryEntryView(head) else { return true }
        let device = UnsafeRawBufferPointer(token)
        var facts = EventFacts(outcome.type, of: entry, device: device, revision: outcome.revision)
        switch outcome.reason {
        case nil: break
        case .told(let reason): facts.details = .reason(reason)
        case .removed(let removal): facts.details = .by(removal)
        case .damagedPayload: facts.details = .rejected(Self.damage)
        case .stopped(var reason):
          return reason.withUTF8 { reason in
            facts.details = .stopped(UnsafeRawBufferPointer(reason))
            return events.emit(facts, key: device, for: .outcome(slot))
          }
        }
        return events.emit(facts, key: device, for: .outcome(slot))
      }
    }
  }

  private static let damage = Rejection(
    .internalServerError, field: "payload", rule: "The payload was changed while it waited for its device; publish the request again.")

  /// Emits unsent events until Kafka's queue has no more room.
  func emitUnsent() {
    while let slot = unsent.last {
      if let outcome = slots[slot], !emit(outcome, slot) { return }
      unsent.removeLast()
    }
  }

  /// Forgets all outcomes: entries whose events Kafka has not confirmed stay in their mailboxes.
  func close() {
    slots = SlotTable()
    unsent = []
  }

  /// Takes the reports of events. Deletes the entries whose events Kafka has, with one call for each device.
  func reported(_ reports: [(slot: Int, failed: Bool)]) {
    var done: [DeliveryOutcome] = []
    done.reserveCapacity(reports.count)
    for (slot, failed) in reports {
      if failed {
        if slots[slot] != nil { unsent.append(slot) }
      } else if let outcome = slots.take(slot) {
        done.append(outcome)
      }
    }
    // Sorted so that a session's outcomes follow each other. The pairs are small, and an outcome is large.
    let order = done.indices.map { (session: ObjectIdentifier(done[$0].session), index: $0) }.sorted { $0 < $1 }
    var rest = order[...]
    while let session = rest.first?.session {
      let own = rest.prefix { $0.session == session }
      rest = rest.dropFirst(own.count)
      let first = done[own[own.startIndex].index]
      delete(own.map { (done[$0.index].number, done[$0.index].revision) }, of: first.session, first.token)
    }
  }

  /// Deletes entries of one session's mailbox. The session is told whether Redis has confirmed it.
  func delete(_ entries: [(number: UInt64, revision: Revision)], of session: Session, _ token: String) {
    let numbers = entries.map(\.number)
    mailboxes.delete(entries.map(\.revision), of: token) { error in
      if error == nil { session.open?.deleted(numbers) } else { session.open?.notDeleted(numbers) }
    }
  }
}
