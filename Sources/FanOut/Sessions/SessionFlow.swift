import Notifications

/// Which notifications of one session are in flight, and whether new ones come live or by pages of the mailbox.
///
/// A session is *live* when everything in its mailbox is in flight: then it sends delivery records as they come. Otherwise it *pages*: it
/// leaves live records to the mailbox, and reads the next page when it has room. A page may or may not hold a record that came while it was
/// read, so the session reads again. A live record that is not later than a settled one may have been paged, acknowledged and deleted already:
/// it is not sent, and the mailbox is read instead. An acknowledged entry that Redis could not delete stays in flight, and is deleted again at
/// the next resync.
/// So at most `window` are unacknowledged, nothing in the mailbox is forgotten, and nothing is sent twice in a session, unless Redis has
/// lost a deletion that it confirmed. A notification that is never acknowledged takes one place in the window, and delays no other.
struct SessionFlow {
  /// One notification on its way: from the socket until its entry is deleted from the mailbox.
  struct InFlight {
    enum Phase {
      /// It has a number: it was sent, or is held until the stops are confirmed.
      case sent
      /// Acknowledged; its event is on the way to Kafka, then it is deleted from the mailbox.
      case settling
      /// Acknowledged, and Kafka has its event, but Redis could not delete it.
      case undeleted
      /// Deleted from the mailbox.
      case gone
    }

    let number: UInt64
    let revision: Revision
    /// The entry without its payload, for its event.
    let head: [UInt8]
    /// When it was sent: the lane's seconds.
    let sentAt: UInt32
    /// It came by a delivery record, else by a page of the mailbox.
    let isLive: Bool
    /// The meaning of its acknowledgement.
    let kind: Kind
    var phase = Phase.sent
  }

  /// The meaning of an entry's acknowledgement.
  struct Kind {
    /// The entry removes a notification.
    var isRemoval = false
    /// Its request was replayed or redriven.
    var isRedriven = false
  }

  /// The session's next action after a change.
  enum Action: Equatable {
    case nothing
    /// Read the oldest `count` entries of the mailbox.
    case page(count: Int)
  }

  /// The session's action for a delivery record.
  enum LiveAction: Equatable {
    case send(number: UInt64)
    /// Leave the entry to the mailbox, and do this action.
    case leave(Action)
  }

  private enum Mode: Equatable {
    case live
    /// There may be more in the mailbox; no page is being read.
    case behind
    /// A page is being read; `missed`: a live record came meanwhile, or an entry of the page found no room.
    case reading(missed: Bool)
  }

  /// By number.
  private var entries: [InFlight] = []
  /// The number of the next delivery.
  private var next: UInt64
  /// The newest timestamp of the revisions that are acknowledged and deleted.
  private var settledUpTo: UInt64 = 0
  // Narrow, since there is one for each idle device.
  private var sent: UInt16 = 0
  private let limit: UInt16
  private var mode = Mode.behind

  private static let keptCapacity = 2

  /// - Parameters:
  ///   - first: the first delivery's number: anything, so that a number of an earlier session means nothing.
  ///   - window: how many may be unacknowledged.
  init(first: UInt64, window: Int) {
    next = first
    limit = UInt16(clamping: window)
  }

  /// How many are unacknowledged; how many may be.
  var unacknowledged: Int { Int(sent) }
  private var window: Int { Int(limit) }

  /// Whether nothing is in flight.
  var isIdle: Bool { entries.isEmpty }

  private func isInFlight(_ revision: Revision) -> Bool { entries.contains { $0.revision == revision } }

  /// Bounds the deliveries that are unacknowledged, and those whose events Kafka does not have yet.
  private var hasRoom: Bool { unacknowledged < window && entries.count < 4 * window }

  /// Adds a delivery that is sent now; answers its number.
  private mutating func send(_ revision: Revision, _ kind: Kind, _ head: [UInt8], _ now: UInt32, isLive: Bool) -> UInt64 {
    let number = next
    entries.append(InFlight(number: number, revision: revision, head: head, sentAt: now, isLive: isLive, kind: kind))
    sent += 1
    next += 1
    return number
  }

  /// Takes a delivery record.
  mutating func live(_ revision: Revision, _ kind: Kind, now: UInt32, head: () -> [UInt8]) -> LiveAction {
    guard mode == .live else {
      fallBehind()
      return .leave(.nothing)
    }
    if isInFlight(revision) { return .leave(.nothing) }
    // Its entry may have been paged, acknowledged and deleted. Only the mailbox can tell.
    if revision.timestamp <= settledUpTo { return .leave(resync()) }
    guard hasRoom else {
      mode = .behind
      return .leave(.nothing)
    }
    return .send(number: send(revision, kind, head(), now, isLive: true))
  }

  /// Reads the mailbox, which may hold entries whose delivery records never came: at the start, and from time to time.
  mutating func resync() -> Action {
    fallBehind()
    return advance()
  }

  /// Leaves a delivery and all later ones to the pages of the mailbox.
  mutating func fallBehind() {
    if case .reading = mode { mode = .reading(missed: true) } else { mode = .behind }
  }

  /// Reads the next page after acknowledgements and deletions, if one is wanted and there is room.
  mutating func advance() -> Action {
    guard mode == .behind, hasRoom else { return .nothing }
    // A page is worth its round trip when half of the window is free. A device may never acknowledge more than half of it, so the session
    // also reads a page when all acknowledged entries are deleted.
    guard unacknowledged <= window / 2 || unacknowledged == entries.count else { return .nothing }
    mode = .reading(missed: false)
    // Entries in flight lie at the front of the mailbox until they are deleted there.
    return .page(count: entries.count + window - unacknowledged)
  }

  /// Gives an entry of a page its number; nil when it is in flight already, or has no room.
  mutating func paged(_ revision: Revision, _ kind: Kind, now: UInt32, head: () -> [UInt8]) -> UInt64? {
    if isInFlight(revision) { return nil }
    guard hasRoom else {
      // Entries that were deleted after the session had asked for the page were not in it, so it held more than there is room for.
      if case .reading = mode { mode = .reading(missed: true) }
      return nil
    }
    return send(revision, kind, head(), now, isLive: false)
  }

  /// Ends a page, whose entries `paged` has taken.
  ///
  /// - Parameter isComplete: the page had fewer entries than the session asked for, so the mailbox holds no more.
  mutating func pageEnded(isComplete: Bool) -> Action {
    guard case .reading(let missed) = mode else { return .nothing }
    mode = isComplete && !missed ? .live : .behind
    return advance()
  }

  /// Ends a page that could not be read.
  mutating func pageFailed() { if case .reading = mode { mode = .behind } }

  /// The index in `entries` of the delivery with this number, if there is one.
  private func place(of number: UInt64) -> Int? {
    var (low, high) = (0, entries.count)
    while low < high {
      let middle = (low + high) / 2
      if entries[middle].number < number { low = middle + 1 } else { high = middle }
    }
    return low < entries.count && entries[low].number == number ? low : nil
  }

  /// Takes the device's acknowledgement; nil for a number that is not in flight, or was acknowledged before.
  mutating func acknowledge(_ number: UInt64) -> InFlight? {
    guard let place = place(of: number), entries[place].phase == .sent else { return nil }
    entries[place].phase = .settling
    sent -= 1
    return entries[place]
  }

  /// The unacknowledged delivery with this number, sent or held.
  func unacknowledged(_ number: UInt64) -> InFlight? {
    guard let place = place(of: number), entries[place].phase == .sent else { return nil }
    return entries[place]
  }

  /// Releases the number of a held delivery, whose entry stays in the mailbox.
  mutating func withdraw(_ number: UInt64) {
    guard let place = place(of: number), entries[place].phase == .sent else { return }
    sent -= 1
    entries[place].phase = .gone
    removeGone()
  }

  /// Forgets deliveries whose entries are deleted from the mailbox.
  mutating func deleted(_ numbers: [UInt64]) {
    for number in numbers {
      guard let place = place(of: number) else { continue }
      entries[place].phase = .gone
      settledUpTo = max(settledUpTo, entries[place].revision.timestamp)
    }
    removeGone()
  }

  /// Keeps deliveries whose entries Redis could not delete, or did not confirm.
  mutating func notDeleted(_ numbers: [UInt64]) {
    for number in numbers {
      if let place = place(of: number), entries[place].phase == .settling { entries[place].phase = .undeleted }
    }
  }

  /// Whether Redis could not delete a delivery's entry.
  var hasUndeleted: Bool { entries.contains { $0.phase == .undeleted } }

  /// The deliveries to delete again; ``deleted(_:)`` or ``notDeleted(_:)`` follows.
  mutating func takeUndeleted() -> [InFlight] {
    var taken: [InFlight] = []
    for place in entries.indices where entries[place].phase == .undeleted {
      entries[place].phase = .settling
      taken.append(entries[place])
    }
    return taken
  }

  private mutating func removeGone() {
    entries.removeAll { $0.phase == .gone }
    // An idle session does not keep the memory that a burst took.
    if entries.isEmpty && entries.capacity > Self.keptCapacity { entries = [] }
  }

  /// When the oldest unacknowledged delivery was sent: the lane's seconds.
  var oldestUnacknowledged: UInt32? { entries.first { $0.phase == .sent }?.sentAt }
}

extension SessionFlow.Kind {
  init(_ entry: DeliveryEntryView) { self.init(isRemoval: entry.kind == .remove, isRedriven: entry.flags.contains(.isRedriven)) }
}
