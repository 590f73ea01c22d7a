import Notifications

/// Which notifications of one session are under way, and whether new ones come live or by pages of the mailbox.
///
/// A session is *live* when everything in its mailbox is under way: then delivery records are sent as they come. Otherwise it *pages*:
/// live records are left to the mailbox, and the next page is asked for when there is room. A live record that comes while a page is
/// being read may or may not be in that page, so the page is asked for again. So at most `window` are unacknowledged, nothing is sent
/// twice in a session, and nothing that lies in the mailbox is forgotten.
struct SessionFlow {
  /// One notification on its way: from the socket until it is gone from the mailbox.
  struct InFlight {
    enum Phase {
      /// Sent, and not acknowledged.
      case sent
      /// Acknowledged; its event is on the way to Kafka, then it is deleted from the mailbox.
      case settling
      /// Gone from the mailbox.
      case gone
    }

    let revision: Revision
    /// The entry without its payload: what the events need.
    let head: [UInt8]
    /// When it was sent: the lane's seconds.
    let sentAt: UInt32
    /// It came by a delivery record, else by a page of the mailbox.
    let isLive: Bool
    /// What it is, as far as its acknowledgement counts.
    let kind: Kind
    var phase = Phase.sent
  }

  /// What an entry is, as far as its acknowledgement counts.
  struct Kind {
    /// It takes a notification back.
    var isRemoval = false
    /// Its request came again.
    var comesAgain = false

    init() {}

    init(_ entry: DeliveryEntryView) { (isRemoval, comesAgain) = (entry.kind == .remove, entry.flags.contains(.comesAgain)) }
  }

  /// What to do after a change.
  enum Action: Equatable {
    case nothing
    /// Read the oldest `count` entries of the mailbox.
    case page(count: Int)
  }

  private enum Mode: Equatable {
    case live
    /// There may be more in the mailbox; nothing is being read.
    case behind
    /// A page is being read; `missed`: a live record came meanwhile, or an entry of the page found no room.
    case reading(missed: Bool)
  }

  private var entries: [InFlight] = []
  /// The number of `entries[0]`.
  private var base: UInt64
  // Narrow, since there is one for each idle device.
  private var sent: UInt16 = 0
  private let limit: UInt16
  private var mode = Mode.behind

  private static let keptCapacity = 4

  /// - Parameters:
  ///   - first: the first delivery's number: anything, so that a number of an earlier session means nothing.
  ///   - window: how many may be unacknowledged.
  init(first: UInt64, window: Int) {
    base = first
    limit = UInt16(clamping: window)
  }

  /// How many are unacknowledged, and may be.
  var unacknowledged: Int { Int(sent) }
  private var window: Int { Int(limit) }

  /// Whether there is nothing under way.
  var isIdle: Bool { entries.isEmpty }

  private func isUnderWay(_ revision: Revision) -> Bool { entries.contains { $0.revision == revision && $0.phase != .gone } }

  /// What is acknowledged but not yet in Kafka is remembered, too, and bounded by this.
  private var hasRoom: Bool { unacknowledged < window && entries.count < 4 * window }

  /// Notes that one is sent now; answers its number.
  private mutating func send(_ revision: Revision, _ kind: Kind, _ head: [UInt8], _ now: UInt32, isLive: Bool) -> UInt64 {
    entries.append(InFlight(revision: revision, head: head, sentAt: now, isLive: isLive, kind: kind))
    sent += 1
    return base + UInt64(entries.count - 1)
  }

  /// A delivery record has come: the number to send it under, or nil when the mailbox keeps it for now.
  mutating func live(_ revision: Revision, _ kind: Kind, now: UInt32, head: () -> [UInt8]) -> UInt64? {
    switch mode {
    case .live:
      if isUnderWay(revision) { return nil }
      guard hasRoom else {
        mode = .behind
        return nil
      }
      return send(revision, kind, head(), now, isLive: true)
    case .behind: return nil
    case .reading:
      mode = .reading(missed: true)
      return nil
    }
  }

  /// Something may lie in the mailbox that was never routed here: at the start, and from time to time.
  mutating func resync() -> Action {
    switch mode {
    case .live: mode = .behind
    case .behind: break
    case .reading:
      mode = .reading(missed: true)
      return .nothing
    }
    return advance()
  }

  /// Asks for a page when the mode wants one and there is room.
  private mutating func advance() -> Action {
    // Half a window, so that a page is worth its round trip.
    guard mode == .behind, unacknowledged <= window / 2, hasRoom else { return .nothing }
    mode = .reading(missed: false)
    // What is under way lies at the front of the mailbox until it is deleted there.
    return .page(count: entries.count(where: { $0.phase != .gone }) + window - unacknowledged)
  }

  /// Whether an entry of a page is to be sent: the number to send it under.
  mutating func paged(_ revision: Revision, _ kind: Kind, now: UInt32, head: () -> [UInt8]) -> UInt64? {
    if isUnderWay(revision) { return nil }
    guard hasRoom else {
      // What was being deleted when the page was asked for was gone when it was read, so it held more than there is room for.
      if case .reading = mode { mode = .reading(missed: true) }
      return nil
    }
    return send(revision, kind, head(), now, isLive: false)
  }

  /// The page asked for has been read and its entries offered to `paged`.
  ///
  /// - Parameter isComplete: it had fewer entries than were asked for, so the mailbox holds no more.
  mutating func pageEnded(isComplete: Bool) -> Action {
    guard case .reading(let missed) = mode else { return .nothing }
    mode = isComplete && !missed ? .live : .behind
    return advance()
  }

  /// The page could not be read.
  mutating func pageFailed() { if case .reading = mode { mode = .behind } }

  /// Where in `entries` the delivery of this number is; nil for a number that means nothing here, or nothing any more.
  private func place(of number: UInt64) -> Int? {
    number >= base && number - base < UInt64(entries.count) ? Int(number - base) : nil
  }

  /// The device has acknowledged a delivery: what it was, or nil for a number that means nothing here or was acknowledged before.
  mutating func acknowledge(_ number: UInt64) -> InFlight? {
    guard let place = place(of: number), entries[place].phase == .sent else { return nil }
    entries[place].phase = .settling
    sent -= 1
    return entries[place]
  }

  /// What was sent under this number, or is held back under it, and is not acknowledged.
  func unacknowledged(_ number: UInt64) -> InFlight? {
    guard let place = place(of: number), entries[place].phase == .sent else { return nil }
    return entries[place]
  }

  /// One that was held back is not sent under this number after all, and stays in the mailbox.
  mutating func withdraw(_ number: UInt64) {
    if acknowledge(number) != nil { deleted(number) }
  }

  /// After acknowledgements: the next page, if one is wanted.
  mutating func afterAcknowledgements() -> Action { advance() }

  /// A delivery's entry is gone from the mailbox.
  mutating func deleted(_ number: UInt64) {
    guard let place = place(of: number) else { return }
    entries[place].phase = .gone
    var gone = 0
    while gone < entries.count, entries[gone].phase == .gone { gone += 1 }
    base += UInt64(gone)
    if gone == entries.count {
      // What a burst took is not kept by an idle session.
      entries.removeAll(keepingCapacity: entries.capacity <= Self.keptCapacity)
    } else if gone > 0 {
      entries.removeFirst(gone)
    }
  }

  /// After deletions: the next page, if one waited for room.
  mutating func afterDeletions() -> Action { advance() }

  /// When the oldest unacknowledged delivery was sent: the lane's seconds.
  var oldestUnacknowledged: UInt32? { entries.first { $0.phase == .sent }?.sentAt }
}
