import EventLoop
import HTTP
import JSON
import Kafka
import Notifications
import Store
import Worker

/// Notifications on their way to the sockets: live, from the lane's partition, and by pages of the mailboxes.
extension FanOutCore {
  /// A record of the lane's partition: for a session that it holds, or for nobody.
  func received(_ record: RecordView) {
    let verdict = take(record)
    metrics.count(verdict)
    if verdict == .unreadable {
      logger.warning(
        "a delivery record cannot be read; its device finds the notification in its mailbox",
        ["topic": record.topic, "partition": record.partition, "offset": record.offset])
    }
  }

  private func take(_ record: RecordView) -> DeliveryVerdict {
    guard let value = record.value, let delivery = DeliveryRecord(value) else { return .unreadable }
    guard let session = sessions[delivery.generation], let open = session.open else { return .noSession }
    switch delivery.kind {
    case .takeover: takenOver(session)
    case .reregistered: session.perform(open.flow.look(), open)
    case .notify, .remove: return take(delivery, value, session, open)
    }
    return .control
  }

  private func take(
    _ delivery: DeliveryRecord, _ value: UnsafeRawBufferPointer, _ session: Session, _ open: OpenSession
  ) -> DeliveryVerdict {
    if open.isLeaving { return .leaving }
    guard let entry = delivery.entry else {
      session.perform(open.flow.look(), open)
      return .unreadable
    }
    guard open.owner.takes(entry) else { return .otherOwner }
    guard !expiration.isPast(entry, now: WallClock.seconds()) else { return .expired }
    let number = open.flow.live(delivery.revision, now: seconds) { head(of: entry, in: value.dropFirst(DeliveryRecord.headBytes)) }
    guard let number else { return .leftToMailbox }
    send(entry, delivery.revision, number, session, open)
    return .sent
  }

  /// Reads the oldest entries of a session's mailbox.
  func page(of token: String, _ generation: UInt64, count: Int) {
    mailboxes.page(of: token, count: count) { [self] answer in
      switch answer {
      case .success(let page):
        let unreadable = page.forEach { paged(generation, $0, $1, $2) }
        if !unreadable.isEmpty { remove(unreadable: unreadable, of: token, generation) }
        pageEnded(generation, isComplete: page.count < count)
      case .failure(let error):
        if error.code == .faulty { logger.warning("a mailbox cannot be read", ["error": "\(error)"]) }
        sessions[generation]?.open?.flow.pageFailed()
      }
    }
  }

  /// Removes fields that cannot be read, which nobody of ours has put there.
  private func remove(unreadable fields: [[UInt8]], of token: String, _ generation: UInt64) {
    logger.warning(
      "what cannot be read is removed from a mailbox", ["mailbox": mailboxes.name(of: token), "fields": fields.count])
    metrics.unreadableEntries.increment(by: fields.count)
    mailboxes.remove(unreadable: fields, of: token) { [self] _ in deleted(generation, []) }
  }

  /// An entry of a page; what is past its time, or not for its device, or damaged is told and deleted instead of sent.
  private func paged(_ generation: UInt64, _ revision: Revision, _ entry: DeliveryEntryView, _ bytes: UnsafeRawBufferPointer) {
    guard let session = sessions[generation], let open = session.open, !open.isLeaving else { return }
    let number = open.flow.paged(revision, now: seconds) { head(of: entry, in: bytes[...]) }
    guard let number else { return }
    if expiration.isPast(entry, now: WallClock.seconds()) {
      end(number, as: .expired, session, open)
    } else if !open.owner.takes(entry) {
      end(number, as: .filtered, session, open)
    } else if !entry.isPayloadIntact {
      logger.warning(
        "the payload of a notification was changed in its mailbox: it is rejected",
        ["mailbox": mailboxes.name(of: open.token), "id": "\(entry.id)"])
      metrics.damagedPayloads.increment()
      end(number, as: .rejected, session, open)
    } else {
      send(entry, revision, number, session, open)
    }
  }

  /// A notification that is not sent after all: it ends here.
  private func end(_ number: UInt64, as type: EventType, _ session: Session, _ open: OpenSession) {
    guard let entry = open.flow.acknowledge(number) else { return }
    settle(entry, number: number, as: type, session, open)
  }

  private func pageEnded(_ generation: UInt64, isComplete: Bool) {
    guard let session = sessions[generation], let open = session.open else { return }
    session.perform(open.flow.pageEnded(isComplete: isComplete), open)
  }

  func deleted(_ generation: UInt64, _ numbers: [UInt64]) {
    guard let open = sessions[generation]?.open else { return }
    for number in numbers { open.flow.deleted(number) }
    if let session = sessions[generation] { session.perform(open.flow.afterDeletions(), open) }
  }

  /// The entry without its payload: what events need.
  private func head(of entry: DeliveryEntryView, in bytes: Slice<UnsafeRawBufferPointer>) -> [UInt8] {
    Array(bytes.dropLast(entry.payload.count))
  }

  private func send(_ entry: DeliveryEntryView, _ revision: Revision, _ number: UInt64, _ session: Session, _ open: OpenSession) {
    frames.reset()
    switch entry.kind {
    case .notify:
      receipts.withText(of: entry, revision: revision, deviceHash: open.tokenHash) { receipt in
        ServerFrames.notify(entry, revision: revision, delivery: number, receipt: receipt, to: &frames)
      }
      metrics.sent.increment()
    case .remove:
      ServerFrames.remove(entry, revision: revision, delivery: number, to: &frames)
      metrics.removals.increment()
    }
    session.budget.sent()
    session.connection?.send(frame())
  }

  /// What was written to `frames` as a frame.
  func frame() -> WebSocketFrame {
    frames.withUnsafeBytes { bytes in WebSocketFrame.text(count: bytes.count) { $0.copyMemory(from: bytes) } }
  }

  // MARK: Acknowledgements

  /// The device has what was sent to it before an acknowledged notification, and so the frame that told it of its gap.
  func toldGap(of open: OpenSession, _ generation: UInt64) {
    guard let gap = open.gap else { return }
    open.gap = nil
    presences.told(gap, open.token, Presence(partition: partition, generation: generation))
  }

  func settle(
    _ entry: SessionFlow.InFlight, number: UInt64, as type: EventType, isKnown: Bool = false, _ session: Session, _ open: OpenSession
  ) {
    var type = type
    if type == .delivered || type == .updated {
      metrics.acknowledged.increment()
      // The entry's kind stands in the lower half of the byte behind the id.
      let isRemoval = entry.head.withUnsafeBytes { DeliveryEntryView($0)?.kind == .remove }
      if isRemoval { type = .removed }
    }
    let acknowledgement = Acknowledgements.Acknowledgement(
      generation: session.generation, token: open.token, number: number, revision: entry.revision, head: entry.head, type: type,
      isKnown: isKnown)
    if !acknowledgements.add(acknowledgement) { goAway(session, at: .acknowledgements) }
  }

  /// The device did not take it: what it knows it has been given before, by an earlier session.
  func settle(_ entry: SessionFlow.InFlight, number: UInt64, dropped reason: DropReason, _ session: Session, _ open: OpenSession) {
    metrics.dropped.increment()
    let type: EventType =
      switch reason {
      case .known: .delivered
      case .stale: .collapsed
      case .expired: .expired
      }
    settle(entry, number: number, as: type, isKnown: reason == .known, session, open)
  }
}
