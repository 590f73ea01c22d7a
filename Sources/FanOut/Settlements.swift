import Kafka
import Notifications
import Worker

/// What acknowledgements become: an event each, and when Kafka has it, the deletion from the mailbox. Loop-confined.
///
/// Everything here may be forgotten at any moment: the entry is still in the mailbox then, comes again, and the device knows it.
final class Settlements {
  /// One acknowledged delivery on its way.
  struct Settlement {
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
  private let mailbox: Mailbox
  private var places: [Settlement?] = []
  private var free: [Int] = []
  /// What Kafka's queue had no room for; bounded by the windows of the sessions.
  private var unsaid: [Int] = []

  init(_ events: EventProducer, _ mailbox: Mailbox) {
    self.events = events
    self.mailbox = mailbox
  }

  /// Says what became of a delivery.
  func add(_ settlement: Settlement) {
    let place = free.popLast() ?? places.count
    if place == places.count { places.append(nil) }
    places[place] = settlement
    say(place)
  }

  private func say(_ place: Int) {
    guard let settlement = places[place] else { return }
    var token = settlement.token
    let isTaken = settlement.head.withUnsafeBytes { head in
      token.withUTF8 { token in
        // Heads are copies of entries that were read before.
        guard let entry = DeliveryEntryView(head) else { return true }
        let device = UnsafeRawBufferPointer(token)
        var facts = EventFacts(settlement.type, of: entry, device: device, revision: settlement.revision)
        if settlement.isKnown { facts.details = .reason("known") }
        return events.say(facts, key: device, token: EventProducer.Tag.settlement | UInt64(place))
      }
    }
    if !isTaken { unsaid.append(place) }
  }

  /// Kafka's queue has room again.
  func sayAgain() {
    let waiting = unsaid
    unsaid = []
    for place in waiting { say(place) }
  }

  /// Reports of events: what Kafka has is deleted from the mailboxes, one call for each device.
  func reported(_ reports: [(place: Int, failed: Bool)]) {
    var done: [UInt64: (token: String, entries: [(number: UInt64, revision: Revision)])] = [:]
    for (place, failed) in reports {
      guard places.indices.contains(place), let settlement = places[place] else { continue }
      if failed {
        unsaid.append(place)
        continue
      }
      places[place] = nil
      free.append(place)
      done[settlement.generation, default: (settlement.token, [])].entries.append((settlement.number, settlement.revision))
    }
    for (generation, device) in done { mailbox.delete(device.entries, of: device.token, generation: generation) }
  }

  /// Whether everything that was said is in Kafka.
  var isIdle: Bool { free.count == places.count }

  /// Whether something waits to be said again.
  var hasUnsaid: Bool { !unsaid.isEmpty }
}
