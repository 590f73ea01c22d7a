import Notifications
import Store
import Worker

/// The decision about one entry when it reaches its device's session. A value.
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
/// The device's settings at the hand-over decide, not those at the time of publication.
struct HandOver {
  /// The way in which an entry reaches its session.
  enum Occasion {
    /// A delivery record.
    case live
    /// A page of the mailbox.
    case page
    /// The stops were confirmed for an entry that was held. The session has kept its head only.
    case stopsConfirmed
  }

  /// The result for an entry.
  enum Decision {
    /// Send it to the device, to be presented in these ways, and at this interruption level if it differs from the payload's.
    case send(PresentationOptions, InterruptionLevel?)
    /// End it with this outcome.
    case end(Outcome, DeliveryOutcome.Reason?)
    /// Hold it, with its number, until the stops are confirmed: its application may have been started again.
    case hold
    /// Leave it in the mailbox. The metric counts its delivery record as this.
    case leave(DeliveryVerdict)
  }

  let entry: DeliveryEntryView
  let occasion: Occasion
  /// Its revision in the mailbox.
  let revision: Revision
  /// The newest removal of all notifications at the device; nil if there is none, or the occasion does not give it.
  let floor: JournalReference?
  /// The device's owner.
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
    // Settings do not concern removals.
    guard entry.kind == .notify else { return .send([], nil) }
    // A notification with a trigger is shown later. Its device applies the quiet hours from the welcome then.
    let isQuiet = isQuiet && entry.trigger.isEmpty
    switch presentation.answer(for: entry.pushType, entry.flags, isQuiet: isQuiet, granted: { stopped.granted(to: entry.application) }) {
    case .send(let options, let level): return .send(options, level)
    case .filtered(let reason): return .end(.filtered, .told(reason))
    }
  }

  /// Whether the entry is older than a removal of all. An entry with a trigger is pending, and no removal touches it.
  private func isBelow(_ floor: JournalReference) -> Bool {
    entry.trigger.isEmpty && floor.revision.judging(revision) == nil
  }

  /// The stop that ends the entry. No stop ends a removal, since it only removes notifications.
  private var stop: ApplicationStop? {
    entry.kind == .notify ? stopped.stops(of: entry.application)?.ending(entry.published) : nil
  }
}
