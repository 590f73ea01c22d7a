import Calendars
import Cryptography
import EventLoop
import Notifications
import Store
import Worker

/// An open session: its window, its sends, its acknowledgements.
///
/// Each idle device has one, so it is small: 256 bytes, a size of the allocator.
final class OpenSession {
  /// The revisions that were evicted. Hardly any session has some, so they are stored apart.
  private indirect enum Gap {
    case none
    /// The device has acknowledged nothing that was sent after the frame about the gap.
    case unacknowledged(MailboxGap)
  }

  /// Its connection, which releases it when it ends.
  let session: Session
  var registration: Registration
  let owner: Owner
  private var flow: SessionFlow
  /// The offset of the newest record of `devices` that this session has found.
  let registeredAt: Int64
  /// When its credential expires and the session ends, in seconds since 1970.
  let expiration: Int64
  /// Frames that were refused.
  private var errors: UInt8 = 0
  private static let maximumErrors = 100
  /// Running changes of the registration.
  private var changes: UInt8 = 0
  private static let maximumChanges = 8
  /// Responses whose events are on the way to Kafka.
  var responses: UInt8 = 0
  /// The notifications whose removals from the person's other devices are published.
  var opened = OpenedNotifications()
  /// The device was told to go away. It gets no more notifications.
  var isLeaving = false
  private var gap: Gap

  /// - Parameters:
  ///   - session: its connection, which is entering.
  ///   - standing: the device's state in Redis.
  ///   - expiration: when its credential expires, in seconds since 1970.
  init(_ session: Session, _ registration: Registration, _ standing: Presences.Standing, expiration: Int64) {
    self.session = session
    self.registration = registration
    tokenHash = NameHash.hash(registration.device.text)
    self.registration.since = Int64(clamping: standing.owner.since)
    owner = standing.owner
    gap = standing.gap.map { .unacknowledged($0) } ?? .none
    registeredAt = standing.registration.offset
    self.expiration = expiration
    flow = SessionFlow(first: RandomBytes.number() >> 20, window: session.sessions.settings.limits.window)
  }

  var token: String { registration.device.text }

  /// The device's name in receipts and links.
  let tokenHash: UInt64

  private var sessions: Sessions { session.sessions }

  /// Begins to send, from the mailbox's oldest entry on.
  func begin() {
    if case .unacknowledged(let gap) = gap { session.send { ServerFrames.mailboxGap(from: gap.from, to: gap.to, to: &$0) } }
    resync()
  }

  /// Counts a refused frame of the device; true when there were too many.
  func errs() -> Bool {
    errors += 1
    return errors > Self.maximumErrors
  }

  /// Throws if the frame contains settings that this session cannot change.
  func check(_ frame: SettingsFrame) throws(DeviceFrameError) {
    guard let person = frame.person else { return }
    func error(_ field: String, _ rule: String) -> DeviceFrameError {
      DeviceFrameError(
        frame: DeviceFrameType.settings.rawValue, field: field, rule: rule, subject: frame.request.map { FrameSubject.request($0) })
    }
    guard registration.user != nil else { throw error("quiet", "Quiet hours belong to a person: the hello has a user.") }
    if let quiet = person.quiet, !QuietCalendar.isZone(quiet.timeZone) {
      throw error("quiet.timeZone", "A zone has a name of the IANA database, such as Europe/Rome.")
    }
  }

  /// Begins a change of the registration, unless too many run; `changeEnded` follows.
  func beginsChange() -> Bool {
    guard changes < Self.maximumChanges else { return false }
    changes += 1
    return true
  }

  func changeEnded() { changes -= 1 }

  /// Whether a change of the registration runs.
  var isChanging: Bool { changes > 0 }

  var isAwaitingAcknowledgements: Bool { flow.unacknowledged > 0 }

  /// Whether the device has left a delivery unacknowledged for too long.
  var isOverdue: Bool {
    guard let oldest = flow.oldestUnacknowledged else { return false }
    return sessions.seconds - oldest > UInt32(sessions.settings.limits.acknowledgeSeconds)
  }

  /// Whether Redis could not delete something that the device has acknowledged.
  var hasUndeleted: Bool { flow.hasUndeleted }

  /// Reads the mailbox, which may hold entries whose delivery records never came. Deletes again what Redis could not delete.
  func resync() {
    let undeleted = flow.takeUndeleted()
    if !undeleted.isEmpty { sessions.outcomes.delete(undeleted.map { ($0.number, $0.revision) }, of: session, token) }
    perform(flow.resync())
  }

  private func perform(_ action: SessionFlow.Action) {
    switch action {
    case .nothing: break
    case .page(let count): page(count)
    }
  }

  // MARK: Hand-over

  private func handOver(
    _ entry: DeliveryEntryView, _ revision: Revision, _ occasion: HandOver.Occasion, floor: JournalReference? = nil
  ) -> HandOver {
    let now = WallClock.milliseconds()
    return HandOver(
      entry: entry, occasion: occasion, revision: revision, floor: floor, owner: owner, expiration: sessions.expiration,
      stopped: sessions.applications.table,
      presentation: PresentationRule(registration), isQuiet: sessions.people.isQuiet(owner.user, now: now), now: now)
  }

  /// Takes a delivery record of the lane's partition.
  func take(_ delivery: DeliveryRecord, _ value: UnsafeRawBufferPointer) -> DeliveryVerdict {
    if isLeaving { return .leaving }
    guard let entry = delivery.entry else {
      if delivery.isNewer {
        // Nothing in the mailbox becomes readable by it.
        sessions.newer.found(.entry)
        return .newer
      }
      resync()
      return .unreadable
    }
    guard sessions.isClockRight else {
      flow.fallBehind()
      return .leftToMailbox
    }
    let handOver = handOver(entry, delivery.revision, .live)
    let decision = handOver.decision
    if case .leave(let verdict) = decision { return verdict }
    let bytes = value.dropFirst(delivery.headCount)
    switch flow.live(delivery.revision, SessionFlow.Kind(entry), now: sessions.seconds, head: { Self.head(of: entry, in: bytes) }) {
    case .leave(let action):
      perform(action)
      return .leftToMailbox
    case .send(let number):
      carryOut(decision, of: handOver, delivery.revision, number)
      return if case .send = decision { .sent } else { .filtered }
    }
  }

  /// Takes an entry of a page.
  private func paged(_ revision: Revision, _ entry: DeliveryEntryView, _ bytes: UnsafeRawBufferPointer, _ floor: JournalReference?) {
    let head = { Self.head(of: entry, in: bytes[...]) }
    guard let number = flow.paged(revision, SessionFlow.Kind(entry), now: sessions.seconds, head: head) else { return }
    let handOver = handOver(entry, revision, .page, floor: floor)
    carryOut(handOver.decision, of: handOver, revision, number)
  }

  /// Carries out the decision about an entry that has its number.
  private func carryOut(_ decision: HandOver.Decision, of handOver: HandOver, _ revision: Revision, _ number: UInt64) {
    let entry = handOver.entry
    switch decision {
    case .send(let presentation, let level):
      send(entry, revision, number, presentation, level)
      if !entry.flags.contains(.isRedriven) {
        sessions.metrics.sent(at: handOver.now, revision, handOver.occasion == .live ? .live : .mailbox)
      }
    case .end(let type, let reason):
      if case .damagedPayload = reason { reportDamage(of: entry) }
      end(number, as: type, reason)
    case .hold: sessions.applications.confirm { [session] in session.open?.stopsConfirmed(number, isComplete: $0) }
    case .leave: flow.withdraw(number)
    }
  }

  /// Decides about a held entry again, now that the lane has read all stops; or leaves it to a page when the lane could not read them.
  private func stopsConfirmed(_ number: UInt64, isComplete: Bool) {
    guard let held = flow.unacknowledged(number) else { return }
    let decision = held.head.withUnsafeBytes { DeliveryEntryView($0).map { handOver($0, held.revision, .stopsConfirmed).decision } }
    if isComplete, sessions.isClockRight, case .end(let type, let reason) = decision {
      end(number, as: type, reason)
      return perform(flow.advance())
    }
    // Its payload is in the mailbox only.
    flow.withdraw(number)
    // A moment later the lane may be able to read them.
    isComplete ? resync() : sessions.resyncSoon(session.generation)
  }

  /// Ends an entry instead of sending it.
  private func end(_ number: UInt64, as type: Outcome, _ reason: DeliveryOutcome.Reason?) {
    if let entry = flow.acknowledge(number) { emit(type, of: entry, reason) }
  }

  private func reportDamage(of entry: DeliveryEntryView) {
    sessions.logger.with(trace: entry.traceparent).warning(
      "the payload of a notification was changed in its mailbox: it is rejected",
      ["mailbox": sessions.mailboxes.name(of: token), "id": "\(entry.id)"])
    sessions.metrics.damagedPayloads.increment()
  }

  /// Copies the entry without its payload, for its event.
  private static func head(of entry: DeliveryEntryView, in bytes: Slice<UnsafeRawBufferPointer>) -> [UInt8] {
    Array(bytes.dropLast(entry.payload.count))
  }

  private func send(
    _ entry: DeliveryEntryView, _ revision: Revision, _ number: UInt64, _ presentation: PresentationOptions, _ level: InterruptionLevel?
  ) {
    let session = session
    let sessions = session.sessions
    switch entry.kind {
    case .notify:
      let own = registration.category(entry.category)
      let published = own == nil ? sessions.categories.category(entry.category, of: entry.application) : nil
      sessions.receipts.withText(of: entry, revision: revision, deviceHash: tokenHash, category: own ?? published?.category) { receipt in
        session.sendDelivery { json in
          ServerFrames.notify(
            entry, revision: revision, delivery: number, presentation: presentation, countingAs: level, category: published?.json,
            receipt: receipt,
            to: &json
          ) { sessions.link(to: $0, deviceHash: tokenHash) }
        }
      }
      sessions.metrics.count(.notify)
    case .remove:
      session.sendDelivery { ServerFrames.remove(entry, revision: revision, delivery: number, to: &$0) }
      sessions.metrics.count(.remove)
    }
  }

  /// Sends a new link to an attachment. A device that knows the hash of its content was sent it, or has the content.
  func link(_ frame: LinkFrame) {
    guard let link = sessions.link(to: frame.hash, deviceHash: tokenHash) else {
      return session.send { ServerFrames.refused(.request(frame.request), reason: .unknownMedia, field: "hash", to: &$0) }
    }
    session.send { ServerFrames.linked(request: frame.request, link, to: &$0) }
  }

  // MARK: Pages

  /// Reads the oldest entries of the mailbox.
  private func page(_ count: Int) {
    // A device that was told to go away finds its mailbox when it reconnects.
    guard !isLeaving else { return }
    sessions.mailboxes.page(of: token, count: count) { [session] answer in
      // The answer may come after the end.
      guard let open = session.open, !open.isLeaving else { return }
      switch answer {
      case .success where !open.sessions.isClockRight: open.flow.pageFailed()
      case .success(let page): open.paged(page, count)
      case .failure(let error):
        if error.code == .faulty { session.sessions.logger.warning("a mailbox cannot be read", ["error": "\(error)"]) }
        open.flow.pageFailed()
      }
    }
  }

  private func paged(_ page: MailboxEntries, _ count: Int) {
    if let depth = page.depth { sessions.metrics.mailboxEntries.observe(Double(depth)) }
    if page.newer > 0 { sessions.newer.found(.entry, count: page.newer) }
    let floor = page.floor
    let unreadable = page.forEach { paged($0, $1, $2, floor) }
    if !unreadable.isEmpty { remove(unreadable: unreadable) }
    perform(flow.pageEnded(isComplete: page.count < count))
  }

  /// Removes fields of the mailbox that no worker can have written.
  private func remove(unreadable fields: [[UInt8]]) {
    sessions.logger.warning(
      "unreadable fields of a mailbox are removed", ["mailbox": sessions.mailboxes.name(of: token), "fields": fields.count])
    sessions.metrics.unreadableEntries.increment(by: fields.count)
    sessions.mailboxes.remove(unreadable: fields, of: token) { [session] _ in session.open?.deleted([]) }
  }

  /// Takes the numbers of entries that are deleted from the mailbox.
  func deleted(_ numbers: [UInt64]) {
    flow.deleted(numbers)
    perform(flow.advance())
  }

  /// Takes the numbers of entries that Redis could not delete. They are deleted again at the next resync.
  func notDeleted(_ numbers: [UInt64]) {
    flow.notDeleted(numbers)
    sessions.resyncSoon(session.generation)
  }

  // MARK: Acknowledgements

  /// Takes the numbers of deliveries that the device has taken, or dropped.
  func acknowledge(_ ack: AckFrame) {
    let (now, updated) = (WallClock.milliseconds(), ack.updatedDeliveries)
    ack.forEachDelivery { number in
      guard let entry = flow.acknowledge(number) else { return }
      endGap()
      let kind = entry.kind
      if !kind.isRedriven { sessions.metrics.acknowledged(at: now, entry.revision, entry.isLive ? .live : .mailbox) }
      emit(kind.isRemoval ? .removed : updated.contains(number) ? .updated : .delivered, of: entry)
    }
    ack.forEachDropped { number, reason in
      guard let entry = flow.acknowledge(number) else { return }
      endGap()
      sessions.metrics.count(.dropped)
      switch reason {
      // An earlier session sent it.
      case .known: emit(entry.kind.isRemoval ? .removed : .delivered, of: entry, .told("known"))
      case .stale: emit(.collapsed, of: entry)
      // It was on its way when the device removed all, or Redis has lost that removal.
      case .canceled: emit(.canceled, of: entry, .told("removed"))
      case .expired: emit(.expired, of: entry)
      case .filtered: emit(.filtered, of: entry, .told("the device shows nothing of it"))
      }
    }
    perform(flow.advance())
  }

  /// Ends the gap: the device has acknowledged a delivery that was sent after the frame about it.
  private func endGap() {
    guard case .unacknowledged(let gap) = gap else { return }
    self.gap = .none
    sessions.presences.told(gap, token, sessions.presence(session.generation))
  }

  /// Emits the outcome of a delivery. Its entry is deleted when Kafka has the event.
  private func emit(_ type: Outcome, of entry: SessionFlow.InFlight, _ reason: DeliveryOutcome.Reason? = nil) {
    if type == .delivered || type == .updated || type == .removed { sessions.metrics.count(.acknowledged) }
    let outcome = DeliveryOutcome(
      session: session, token: token, number: entry.number, revision: entry.revision, head: entry.head, type: type, reason: reason)
    if !sessions.outcomes.add(outcome) { session.goAway(at: .acknowledgements) }
  }
}
