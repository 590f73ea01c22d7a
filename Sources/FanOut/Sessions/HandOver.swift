import Notifications
import Store
import Worker

/// The decision about one entry when it reaches the session of its device: a value, without a clock and connections.
///
/// The first row that applies decides:
///
/// | the entry | in a page of the mailbox | in a delivery record |
/// |---|---|---|
/// | is for another person or application than the device's | ends as `filtered` | stays in the mailbox |
/// | has expired | ends as `expired` | stays in the mailbox |
/// | was published before the end of a stop of its application | ends as `filtered` | ends as `filtered` |
/// | the same, and the stop has no end yet | is held until the stops are confirmed | is held until the stops are confirmed |
/// | has a damaged payload | ends as `rejected` | is not handed over: the record is unreadable |
/// | none of these | is sent | is sent |
///
/// A delivery record may arrive late, when its entry has ended. So it ends no entry: a later page does. A stop is the exception, since its
/// application may publish a flood, which would fill the mailboxes of connected devices. When the stops are confirmed, an entry that was held
/// is decided like one of a page.
struct HandOver {
  /// What brings an entry to its session.
  enum Occasion {
    /// A delivery record.
    case live
    /// A page of the mailbox.
    case page
    /// The stops were confirmed for an entry that was held. The session has kept its head only.
    case stopsConfirmed
  }

  /// What becomes of an entry.
  enum Decision {
    /// The device is sent it.
    case send
    /// It ends with this outcome.
    case end(EventType, DeliveryOutcome.Reason?)
    /// It keeps its number unsent until the stops are confirmed: the lane may not have read yet that its application was started again.
    case hold
    /// It stays in the mailbox. The metric counts its delivery record as this.
    case leave(DeliveryVerdict)
  }

  let entry: DeliveryEntryView
  let occasion: Occasion
  /// The device's.
  let owner: Owner
  let expiration: ExpirationRule
  let stopped: StoppedApplications
  /// Milliseconds since 1970.
  let now: Int64

  /// Decides by the table above.
  var decision: Decision {
    // First, as in the judge and in a registration: all three find such entries, and an entry has one outcome.
    if !owner.takes(entry) { return occasion == .live ? .leave(.otherOwner) : .end(.filtered, .told(owner.reasonAgainst(entry))) }
    if expiration.isPast(entry, now: now / 1000) { return occasion == .live ? .leave(.expired) : .end(.expired, nil) }
    if let stop { return stop.isOpen && occasion != .stopsConfirmed ? .hold : .end(.filtered, .stopped(stop.reason ?? "")) }
    if occasion == .page, !entry.isPayloadIntact { return .end(.rejected, .damagedPayload) }
    return .send
  }

  /// The stop that ends the entry. A removal takes a notification off the screen, and no stop ends it.
  private var stop: ApplicationStop? {
    entry.kind == .notify ? stopped.stops(of: entry.application)?.ending(entry.published) : nil
  }
}
