import Cryptography
import EventLoop
import JSON
import Notifications
import Store
import Worker

/// What a session is while notifications flow: its window, its sends, its acknowledgements. Loop-confined.
///
/// There is one for each idle device, so it is kept small: 256 bytes, which is a size of the allocator's.
final class OpenSession {
  /// Which revisions were evicted; it lies apart, since hardly any session has one.
  private indirect enum Gap {
    case none
    /// The device has not yet acknowledged what was sent behind the frame that tells it.
    case unacknowledged(MailboxGap)
  }

  /// The connection that it belongs to, which lets go of it when it has ended.
  let session: Session
  var registration: Registration
  let owner: Owner
  private var flow: SessionFlow
  /// Where the last record of `devices` lies that this session has found: what later ones must come after.
  let registeredAt: Int64
  /// When its credential expires, in seconds since 1970: it ends then.
  let expiration: Int64
  /// How often the connection to Redis had broken when the session began.
  let epoch: UInt32
  /// Frames that were refused.
  private var errors: UInt8 = 0
  private static let maximumErrors = 100
  /// Changes of the registration that are under way.
  private var changes: UInt8 = 0
  private static let maximumChanges = 8
  /// Responses whose events are on the way to Kafka.
  var responses: UInt8 = 0
  /// It was told to go: it is sent nothing more.
  var isLeaving = false
  private var gap: Gap

  /// - Parameters:
  ///   - session: one that is being entered.
  ///   - standing: what Redis has of the device.
  ///   - expiration: when its credential expires, in seconds since 1970.
  init(_ session: Session, _ registration: Registration, _ standing: Presences.Standing, expiration: Int64) {
    self.session = session
    self.registration = registration
    self.registration.since = Int64(clamping: standing.owner.since)
    owner = standing.owner
    gap = standing.gap.map { .unacknowledged($0) } ?? .none
    registeredAt = standing.registration.offset
    self.expiration = expiration
    epoch = session.sessions.epoch
    flow = SessionFlow(first: RandomBytes.number() >> 20, window: session.sessions.settings.window)
  }

  var token: String { registration.device.text }

  /// What receipts and links name the device by. It is not stored: there are more idle sessions than receipts.
  var tokenHash: UInt64 { StableHash.hash(token) }

  private var sessions: Sessions { session.sessions }

  /// Begins to send, from the mailbox's oldest entry on.
  func begin() {
    if case .unacknowledged(let gap) = gap { session.send { ServerFrames.mailboxGap(from: gap.from, to: gap.to, to: &$0) } }
    resync()
  }

  /// A frame of the device was refused; whether it was one too many.
  func errs() -> Bool {
    errors += 1
    return errors > Self.maximumErrors
  }

  /// Whether a further change of the registration may begin; `changeEnded` follows.
  func beginsChange() -> Bool {
    guard changes < Self.maximumChanges else { return false }
    changes += 1
    return true
  }

  func changeEnded() { changes -= 1 }

  /// Whether a change of the registration is under way.
  var isChanging: Bool { changes > 0 }

  var isAwaitingAcknowledgements: Bool { flow.unacknowledged > 0 }

  /// Whether the device has left a delivery unacknowledged for too long.
  var isOverdue: Bool {
    guard let oldest = flow.oldestUnacknowledged else { return false }
    return sessions.seconds - oldest > UInt32(sessions.settings.acknowledgeSeconds)
  }

  /// Something may lie in the mailbox that was never routed here.
  func resync() { perform(flow.resync()) }

  private func perform(_ action: SessionFlow.Action) {
    switch action {
    case .nothing: break
    case .page(let count): page(count)
    }
  }

  // MARK: Live

  /// A delivery has come by the lane's partition.
  func take(_ delivery: DeliveryRecord, _ value: UnsafeRawBufferPointer) -> DeliveryVerdict {
    if isLeaving { return .leaving }
    guard let entry = delivery.entry else {
      resync()
      return .unreadable
    }
    guard owner.takes(entry) else { return .otherOwner }
    let sessions = sessions
    let now = WallClock.milliseconds()
    guard !sessions.expiration.isPast(entry, now: now / 1000) else { return .expired }
    let bytes = value.dropFirst(delivery.headCount)
    let live = flow.live(delivery.revision, SessionFlow.Kind(entry), now: sessions.seconds) { Self.head(of: entry, in: bytes) }
    guard case .send(let number) = live else {
      if case .leave(let action) = live { perform(action) }
      return .leftToMailbox
    }
    if let stop = sessions.stopped.stop(of: entry) {
      ends(number, by: stop)
      perform(flow.advance())
      return .filtered
    }
    send(entry, delivery.revision, number)
    if !entry.flags.contains(.comesAgain) { sessions.metrics.sent(at: now, delivery.revision, .live) }
    return .sent
  }

  /// The entry without its payload: what events need.
  private static func head(of entry: DeliveryEntryView, in bytes: Slice<UnsafeRawBufferPointer>) -> [UInt8] {
    Array(bytes.dropLast(entry.payload.count))
  }

  private func send(_ entry: DeliveryEntryView, _ revision: Revision, _ number: UInt64) {
    let session = session
    let sessions = session.sessions
    switch entry.kind {
    case .notify:
      sessions.receipts.withText(of: entry, revision: revision, deviceHash: tokenHash) { receipt in
        session.sendDelivery { json in
          ServerFrames.notify(entry, revision: revision, delivery: number, receipt: receipt, to: &json) {
            sessions.link(to: $0, deviceHash: tokenHash)
          }
        }
      }
      sessions.metrics.sent.increment()
    case .remove:
      session.sendDelivery { ServerFrames.remove(entry, revision: revision, delivery: number, to: &$0) }
      sessions.metrics.removals.increment()
    }
  }

  /// The device asks for a new link to an attachment. Who knows the hash of its content has been given it, or has the content.
  func link(_ frame: LinkFrame) {
    guard let link = sessions.link(to: frame.hash, deviceHash: tokenHash) else {
      return session.send { ServerFrames.refused(request: frame.request, reason: .unknownMedia, field: "hash", to: &$0) }
    }
    session.send { ServerFrames.linked(request: frame.request, link, to: &$0) }
  }

  // MARK: By pages

  /// Reads the oldest entries of the mailbox.
  private func page(_ count: Int) {
    // The answer may come after the end.
    sessions.mailboxes.page(of: token, count: count) { [session] answer in
      guard let open = session.open else { return }
      switch answer {
      case .success(let page): open.paged(page, count)
      case .failure(let error):
        if error.code == .faulty { session.sessions.logger.warning("a mailbox cannot be read", ["error": "\(error)"]) }
        open.flow.pageFailed()
      }
    }
  }

  private func paged(_ page: MailboxEntries, _ count: Int) {
    if let depth = page.depth { sessions.metrics.mailboxEntries.observe(Double(depth)) }
    let unreadable = page.forEach(paged)
    if !unreadable.isEmpty { remove(unreadable: unreadable) }
    perform(flow.pageEnded(isComplete: page.count < count))
  }

  /// An entry of a page; what is past its time, or not for its device, or damaged ends here instead of being sent.
  private func paged(_ revision: Revision, _ entry: DeliveryEntryView, _ bytes: UnsafeRawBufferPointer) {
    guard !isLeaving else { return }
    let paged = flow.paged(revision, SessionFlow.Kind(entry), now: sessions.seconds) { Self.head(of: entry, in: bytes[...]) }
    guard let number = paged else { return }
    let now = WallClock.milliseconds()
    if sessions.expiration.isPast(entry, now: now / 1000) {
      end(number, as: .expired)
    } else if !owner.takes(entry) {
      // As a registration tells it that finds the entry at the same time.
      end(number, as: .filtered, .told(owner.reasonAgainst(entry)))
    } else if let stop = sessions.stopped.stop(of: entry) {
      ends(number, by: stop)
    } else if !entry.isPayloadIntact {
      sessions.logger.with(trace: entry.traceparent).warning(
        "the payload of a notification was changed in its mailbox: it is rejected",
        ["mailbox": sessions.mailboxes.name(of: token), "id": "\(entry.id)"])
      sessions.metrics.damagedPayloads.increment()
      end(number, as: .rejected, .damagedPayload)
    } else {
      send(entry, revision, number)
      if !entry.flags.contains(.comesAgain) { sessions.metrics.sent(at: now, revision, .mailbox) }
    }
  }

  /// Removes fields that cannot be read, which nobody of ours has put there.
  private func remove(unreadable fields: [[UInt8]]) {
    sessions.logger.warning(
      "what cannot be read is removed from a mailbox", ["mailbox": sessions.mailboxes.name(of: token), "fields": fields.count])
    sessions.metrics.unreadableEntries.increment(by: fields.count)
    sessions.mailboxes.remove(unreadable: fields, of: token) { [session] _ in session.open?.deleted([]) }
  }

  /// Entries are deleted from the mailbox.
  func deleted(_ numbers: [UInt64]) {
    flow.deleted(numbers)
    perform(flow.advance())
  }

  // MARK: Acknowledgements

  /// The device has taken deliveries, or dropped them.
  func acknowledge(_ ack: AckFrame) {
    let now = WallClock.milliseconds()
    ack.forEachDelivery { number in
      guard let entry = flow.acknowledge(number) else { return }
      gapIsTold()
      let kind = entry.kind
      if !kind.comesAgain { sessions.metrics.acknowledged(at: now, entry.revision, entry.isLive ? .live : .mailbox) }
      emit(kind.isRemoval ? .removed : ack.isUpdated(number) ? .updated : .delivered, of: entry)
    }
    ack.forEachDropped { number, reason in
      guard let entry = flow.acknowledge(number) else { return }
      gapIsTold()
      sessions.metrics.dropped.increment()
      switch reason {
      // It was given it before, by an earlier session.
      case .known: emit(entry.kind.isRemoval ? .removed : .delivered, of: entry, .told("known"))
      case .stale: emit(.collapsed, of: entry)
      case .expired: emit(.expired, of: entry)
      }
    }
    perform(flow.advance())
  }

  /// The device has what was sent to it before an acknowledged notification, and so the frame that told it of its gap.
  private func gapIsTold() {
    guard case .unacknowledged(let gap) = gap else { return }
    self.gap = .none
    sessions.presences.told(gap, token, sessions.presence(session.generation))
  }

  /// A notification that is not sent after all.
  private func end(_ number: UInt64, as type: EventType, _ reason: Acknowledgements.Reason? = nil) {
    guard let entry = flow.acknowledge(number) else { return }
    emit(type, of: entry, reason)
  }

  // MARK: Stopped applications

  /// A notification whose application is or was stopped is not sent: it ends, unless it is not certain that the stop goes on.
  private func ends(_ number: UInt64, by stop: ApplicationStop) {
    if stop.isOpen { sessions.stopped.confirm(number, of: session) } else { end(number, as: .filtered, .stopped(stop.reason ?? "")) }
  }

  /// The stops of applications are all known now, or cannot be: a notification that was held back for that ends, or waits for the next
  /// page of the mailbox, in which it is sent.
  func stopsConfirmed(_ number: UInt64, isComplete: Bool) {
    guard let entry = flow.unacknowledged(number) else { return }
    let stop = entry.head.withUnsafeBytes { DeliveryEntryView($0).flatMap(sessions.stopped.stop) }
    if isComplete, let stop {
      end(number, as: .filtered, .stopped(stop.reason ?? ""))
      perform(flow.advance())
    } else {
      flow.withdraw(number)
      // What cannot be known now may be known a moment later.
      isComplete ? resync() : sessions.resyncSoon(session.generation)
    }
  }

  /// Emits what became of a delivery; when Kafka has it, its entry is deleted.
  private func emit(_ type: EventType, of entry: SessionFlow.InFlight, _ reason: Acknowledgements.Reason? = nil) {
    if type == .delivered || type == .updated || type == .removed { sessions.metrics.acknowledged.increment() }
    let acknowledgement = Acknowledgements.Acknowledgement(
      session: session, token: token, number: entry.number, revision: entry.revision, head: entry.head, type: type, reason: reason)
    if !sessions.acknowledgements.add(acknowledgement) { session.goAway(at: .acknowledgements) }
  }
}
