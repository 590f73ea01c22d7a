import EventLoop
import Kafka
import Notifications
import Store
import Worker

/// What acknowledgements become: an event each, and when Kafka has it, the deletion from the mailbox. Loop-confined.
///
/// Everything here may be forgotten at any moment: the entry is still in the mailbox then, comes again, and the device knows it.
final class Acknowledgements {
  /// One acknowledged delivery on its way.
  struct Acknowledgement {
    let generation: UInt64
    let token: String
    let number: UInt64
    let revision: Revision
    let head: [UInt8]
    let type: EventType
    /// The device has not taken it again, since it had it from an earlier session.
    let isKnown: Bool
  }

  private let events: EventProducer
  private let mailboxes: Mailboxes
  private var places = SlotTable<Acknowledgement>()
  /// What Kafka's queue had no room for.
  private var unsaid: [Int] = []
  /// Told which entries of a session are gone from its mailbox.
  var onDeleted: ((_ generation: UInt64, _ numbers: [UInt64]) -> Void)?
  /// How many may be on their way: about 400 bytes each.
  private let most: Int

  init(_ events: EventProducer, _ mailboxes: Mailboxes, most: Int = 250_000) {
    self.events = events
    self.mailboxes = mailboxes
    self.most = most
  }

  /// How many are on their way.
  var count: Int { places.count }

  /// Says what became of a delivery; false when too many are on their way: it stays in the mailbox, and comes again.
  func add(_ acknowledgement: Acknowledgement) -> Bool {
    guard count < most else { return false }
    let place = places.add(acknowledgement)
    if !say(place) { unsaid.append(place) }
    return true
  }

  /// False when Kafka's queue has no room.
  private func say(_ place: Int) -> Bool {
    guard let acknowledgement = places[place] else { return true }
    var token = acknowledgement.token
    return acknowledgement.head.withUnsafeBytes { head in
      token.withUTF8 { token in
        // Heads are copies of entries that were read before.
        guard let entry = DeliveryEntryView(head) else { return true }
        let device = UnsafeRawBufferPointer(token)
        var facts = EventFacts(acknowledgement.type, of: entry, device: device, revision: acknowledgement.revision)
        if acknowledgement.isKnown { facts.details = .reason("known") }
        if acknowledgement.type == .rejected { facts.details = .rejected(Self.damage) }
        return events.say(facts, key: device, token: EventProducer.Tag.acknowledgement | UInt64(place))
      }
    }
  }

  private static let damage = Rejection(
    .internalServerError, field: "payload", rule: "The payload was changed while it waited for its device; publish the request again.")

  /// Kafka's queue may have room again; what it has none for waits on.
  func sayAgain() {
    while let place = unsaid.last, say(place) { unsaid.removeLast() }
  }

  /// Reports of events: what Kafka has is deleted from the mailboxes, one call for each device.
  func reported(_ reports: [(place: Int, failed: Bool)]) {
    var done: [UInt64: (token: String, entries: [(number: UInt64, revision: Revision)])] = [:]
    for (place, failed) in reports {
      if failed {
        if places[place] != nil { unsaid.append(place) }
      } else if let acknowledgement = places.take(place) {
        done[acknowledgement.generation, default: (acknowledgement.token, [])].entries.append(
          (acknowledgement.number, acknowledgement.revision))
      }
    }
    // When it fails the entries are paged again by a later session, and dropped by the device, which knows them.
    for (generation, device) in done {
      mailboxes.delete(device.entries.map(\.revision), of: device.token) { [self] _ in
        onDeleted?(generation, device.entries.map(\.number))
      }
    }
  }

  /// Whether everything that was said is in Kafka.
  var isIdle: Bool { places.count == 0 }

  /// Whether something waits to be said again.
  var hasUnsaid: Bool { !unsaid.isEmpty }
}
