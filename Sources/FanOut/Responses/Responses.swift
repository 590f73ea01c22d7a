import EventLoop
import Notifications
import Store
import Worker

/// Checks responses by their receipts, produces their events, and accepts them when Kafka has these.
///
/// Opening a notification may remove it from the person's other devices: then the removal is in Kafka, too, before the response is accepted.
final class Responses {
  /// A response whose records are on their way to Kafka.
  private struct Pending {
    let session: Session
    let response: String
    /// Records whose reports will come.
    var reports = 0
    var failed = false
    /// The notification that it removes from the person's other devices.
    var removes: NotificationID?
  }

  /// The most responses of a session on their way at once.
  private static let maximum = 64

  private let receipts: Receipts
  private let events: EventProducer
  private let metrics: FanOutMetrics
  private var pending = SlotTable<Pending>()
  /// A removal is a request, which Kafka keeps for a month and every worker reads. No person opens as many notifications as this.
  private var removals = DeviceBudget(perMinute: 60)
  /// Each response is an event. A device that was offline has a thousand at most.
  private var responses = DeviceBudget(perMinute: 2_000)

  init(_ receipts: Receipts, _ events: EventProducer, metrics: FanOutMetrics) {
    self.receipts = receipts
    self.events = events
    self.metrics = metrics
  }

  /// Takes a response of a device.
  func respond(_ frame: ResponseFrame, in open: OpenSession) {
    guard open.responses < Self.maximum else {
      // Closing loses nothing: the device sends unanswered responses again after it reconnects.
      metrics.limited(.responses)
      return open.session.close(.tooManyResponses)
    }
    let verdict: ResponseVerdict? = receipts.withReceipt(frame.receipt) { receipt in
      guard receipt.deviceHash == open.tokenHash, open.owner.takes(user: receipt.userHash, application: receipt.application) else {
        return .refused(.notForThisDevice, field: "receipt")
      }
      guard receipt.withIdentifier(frame.identifier.equals) else {
        return .refused(.badReceipt, field: "identifier")
      }
      let category = receipt.delivered ?? DeliveredCategory(open.registration.category(receipt.category))
      let verdict = category.judge(action: frame.action, userText: frame.userText, isDynamic: frame.isDynamic)
      guard case .event(let type) = verdict else { return verdict }
      let (removes, now) = (removes(receipt, frame, open), UInt64(SteadyClock.milliseconds()))
      let isWithin = responses.takes(open.tokenHash, at: now)
      guard isWithin, !removes || removals.takes(open.tokenHash, at: now) else {
        metrics.limited(isWithin ? .removals : .responses)
        open.session.close(.tooManyResponses)
        return verdict
      }
      emit(type, receipt, frame, removes, open)
      return verdict
    }
    switch verdict {
    case .event: break
    case .silent: accept(frame.response, of: open.session)
    case .refused(let reason, let field): refuse(frame.response, reason, field, of: open.session)
    // Without an answer the device keeps its response, and sends it again. A refusal would end it.
    case nil where receipts.isNewer(frame.receipt): open.session.sessions.newer.found(.receipt)
    case nil: refuse(frame.response, .badReceipt, "receipt", of: open.session)
    }
  }

  /// Whether a response removes its notification from the person's other devices: the first one of a session that opens it does.
  private func removes(_ receipt: ReceiptView, _ frame: ResponseFrame, _ open: OpenSession) -> Bool {
    receipt.removesWhenOpened && frame.action == NotificationAction.defaultIdentifier && open.registration.user != nil
      && !open.opened.contains(receipt.id)
  }

  private func emit(_ type: Outcome, _ receipt: ReceiptView, _ frame: ResponseFrame, _ removes: Bool, _ open: OpenSession) {
    var facts = EventFacts(type, of: receipt, device: .empty)
    let slot = pending.add(Pending(session: open.session, response: frame.response))
    open.responses += 1
    let (user, text) = (open.registration.user?.text ?? "", frame.userText ?? "")
    let isTaken = withBytes(of: open.token, user, frame.response, frame.action.text, text) { texts in
      (facts.device, facts.user) = (texts[0], texts[1])
      facts.details = .response(
        texts[2], action: texts[3], userText: frame.userText == nil ? nil : texts[4], at: frame.at, isDynamic: frame.isDynamic,
        isUnanswered: frame.isUnanswered)
      return events.emit(facts, key: facts.device, for: .response(slot))
    }
    // The device sends an unanswered response again, so nothing is lost.
    guard isTaken else { return _ = take(slot) }
    pending.update(slot) { $0.reports = 1 }
    guard removes, let user = open.registration.user else { return }
    let isRemoved = events.remove(receipt, of: user, openedBy: open.token, in: frame.response, for: .response(slot))
    if isRemoved { open.opened.insert(receipt.id) }
    let id = receipt.id
    pending.update(slot) { if isRemoved { ($0.reports, $0.removes) = (2, id) } else { $0.failed = true } }
  }

  /// Takes the report on one of a response's records. Only after the last one may the device forget the response.
  func reported(_ slot: Int, failed: Bool) {
    pending.update(slot) {
      $0.reports -= 1
      $0.failed = $0.failed || failed
    }
    guard pending[slot]?.reports == 0, let pending = take(slot), let open = pending.session.open else { return }
    // The device sends it again, and then it removes again.
    guard !pending.failed else { return open.opened.remove(pending.removes) }
    metrics.count(.response)
    accept(pending.response, of: pending.session)
  }

  private func take(_ slot: Int) -> Pending? {
    guard let pending = pending.take(slot) else { return nil }
    pending.session.open?.responses -= 1
    return pending
  }

  private func accept(_ response: String, of session: Session) {
    session.send { ServerFrames.accepted(.response(response), to: &$0) }
  }

  private func refuse(_ response: String, _ reason: RefusalReason, _ field: String, of session: Session) {
    metrics.count(.refused)
    session.send { ServerFrames.refused(.response(response), reason: reason, field: field, to: &$0) }
  }
}
