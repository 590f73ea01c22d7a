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
/// | is older than a removal of all, and has no trigger | ends as `canceled` | is sent: the device knows the removal |
/// | was published before the end of a stop of its application | ends as `filtered` | ends as `filtered` |
/// | the same, and the stop has no end yet | is held until the stops are confirmed | is held until the stops are confirmed |
/// | has a damaged payload | ends as `rejected` | is not handed over: the record is unreadable |
/// | may not be shown by the device's settings (`PresentationRule`) | ends as `filtered` | ends as `filtered` |
/// | none of these | is sent | is sent |
///
/// A delivery record may arrive late, when its entry has ended. So it ends no entry: a later page does. A stop and the settings are the
/// exceptions, since a flood of filtered notifications would fill the mailbox of a connected device. When the stops are confirmed, an entry
/// that was held is decided like one of a page.
///
/// The settings are those that the device has when the entry is handed over. When the request was published they may have been others.
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
    /// The device is sent it, to be presented in these ways, and as of another interruption level than the payload's where one is given.
    case send(PresentationOptions, InterruptionLevel?)
    /// It ends with this outcome.
    case end(Outcome, DeliveryOutcome.Reason?)
    /// It keeps its number unsent until the stops are confirmed: the lane may not have read yet that its application was started again.
    case hold
    /// It stays in the mailbox. The metric counts its delivery record as this.
    case leave(DeliveryVerdict)
  }

  let entry: DeliveryEntryView
  let occasion: Occasion
  /// Its revision, as it stands in the mailbox.
  let revision: Revision
  /// The newest removal of all notifications at the device; nil where there is none, or the occasion does not tell it.
  let floor: JournalReference?
  /// The device's.
  let owner: Owner
  let expiration: ExpirationRule
  /// Which applications are stopped, and what each was granted.
  let stopped: StoppedApplications
  /// The settings of the device.
  let presentation: PresentationRule
  /// The person's quiet hours hold.
  let isQuiet: Bool
  /// Milliseconds since 1970.
  let now: Int64

  /// Decides by the table above.
  var decision: Decision {
    // First, as in the judge and in a registration: all three find such entries, and an entry has one outcome.
    if !owner.takes(entry) { return occasion == .live ? .leave(.otherOwner) : .end(.filtered, .told(owner.reasonAgainst(entry))) }
    if expiration.isPast(entry, now: now / 1000) { return occasion == .live ? .leave(.expired) : .end(.expired, nil) }
    if let floor, isBelow(floor) { return .end(.canceled, .removed(by: floor.id)) }
    if let stop { return stop.isOpen && occasion != .stopsConfirmed ? .hold : .end(.filtered, .stopped(stop.reason ?? "")) }
    if occasion == .page, !entry.isPayloadIntact { return .end(.rejected, .damagedPayload) }
    // A removal is no matter of settings.
    guard entry.kind == .notify else { return .send([], nil) }
    // One with a trigger is shown later: its device decides by the hours that the welcome has told.
    let isQuiet = isQuiet && entry.trigger.isEmpty
    switch presentation.answer(for: entry.pushType, entry.flags, isQuiet: isQuiet, granted: { stopped.granted(to: entry.application) }) {
    case .send(let options, let level): return .send(options, level)
    case .filtered(let reason): return .end(.filtered, .told(reason))
    }
  }

  /// Whether the entry is older than a removal of all. What has a trigger is pending, and no removal touches it.
  private func isBelow(_ floor: JournalReference) -> Bool {
    entry.trigger.isEmpty && floor.revision.judging(revision) == nil
  }

  /// The stop that ends the entry. A removal takes a notification off the screen, and no stop ends it.
  private var stop: ApplicationStop? {
    entry.kind == .notify ? stopped.stops(of: entry.application)?.ending(entry.published) : nil
  }
}
