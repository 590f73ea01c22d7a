import EventLoop
import HTTP
import JSON
import Notifications
import Store
import Worker

/// What the person did: checked and completed from the receipt, and accepted when Kafka has it.
extension FanOutCore {
  func respond(_ frame: ResponseFrame, _ session: Session, _ open: OpenSession) {
    guard responses.hasRoom(session.generation) else {
      // The device resends what was not accepted, and waits for what was.
      metrics.limited(.responses)
      return session.close(.tooManyResponses)
    }
    let verdict: ResponseVerdict? = receipts.withReceipt(frame.receipt) { receipt in
      guard receipt.deviceHash == open.tokenHash, open.owner.takes(user: receipt.userHash, application: receipt.application) else {
        return .refused(.notForThisDevice, field: "receipt")
      }
      guard receipt.withIdentifier({ String(decoding: $0, as: UTF8.self) }) == frame.identifier else {
        return .refused(.badReceipt, field: "identifier")
      }
      let category = receipt.category.isEmpty ? nil : String(decoding: receipt.category, as: UTF8.self)
      let verdict = open.registration.judge(category: category, action: frame.action, userText: frame.userText)
      if case .event(let type) = verdict { say(type, receipt, frame, session, open) }
      return verdict
    }
    switch verdict {
    case .event: break
    case .silent: accepted(response: frame.response, session)
    case .refused(let reason, let field): refused(frame.response, reason, field, session)
    case nil: refused(frame.response, .badReceipt, "receipt", session)
    }
  }

  private func say(_ type: EventType, _ receipt: ReceiptView, _ frame: ResponseFrame, _ session: Session, _ open: OpenSession) {
    var facts = EventFacts(type, of: receipt, device: UnsafeRawBufferPointer(start: nil, count: 0))
    let place = responses.add(PendingResponses.Pending(generation: session.generation, response: frame.response))
    var (token, user, response, action, text) = (
      open.token, open.registration.user ?? "", frame.response, frame.action, frame.userText ?? ""
    )
    let isTaken = token.withUTF8 { token in
      user.withUTF8 { user in
        response.withUTF8 { response in
          action.withUTF8 { action in
            text.withUTF8 { text in
              facts.device = UnsafeRawBufferPointer(token)
              facts.user = UnsafeRawBufferPointer(user)
              facts.details = .response(
                UnsafeRawBufferPointer(response), action: UnsafeRawBufferPointer(action),
                userText: frame.userText == nil ? nil : UnsafeRawBufferPointer(text), at: frame.at)
              return eventProducer?.say(facts, key: facts.device, token: EventProducer.Tag.response | UInt64(place)) ?? false
            }
          }
        }
      }
    }
    // The device resends: an unanswered response is not lost.
    if !isTaken { _ = responses.take(place) }
  }

  /// The report of a response's event: only now the device may forget it.
  func responded(_ place: Int, failed: Bool) {
    guard let pending = responses.take(place), !failed, let session = sessions[pending.generation] else { return }
    metrics.responses.increment()
    accepted(response: pending.response, session)
  }

  private func accepted(response: String, _ session: Session) {
    frames.reset()
    ServerFrames.accepted(response: response, to: &frames)
    session.connection?.send(frame())
  }

  private func refused(_ response: String, _ reason: RefusalReason, _ field: String, _ session: Session) {
    metrics.refused.increment()
    frames.reset()
    ServerFrames.refused(response: response, reason: reason, field: field, to: &frames)
    session.connection?.send(frame())
  }
}

/// Responses whose events are on the way to Kafka, a bounded number for each session.
struct PendingResponses {
  struct Pending {
    let generation: UInt64
    let response: String
  }

  /// What a session may have on the way at a time.
  static let most = 64
  private var places = SlotTable<Pending>()
  private var counts: [UInt64: Int] = [:]

  func hasRoom(_ generation: UInt64) -> Bool { counts[generation, default: 0] < Self.most }

  mutating func add(_ pending: Pending) -> Int {
    counts[pending.generation, default: 0] += 1
    return places.add(pending)
  }

  mutating func take(_ place: Int) -> Pending? {
    guard let pending = places.take(place) else { return nil }
    if let count = counts[pending.generation] { counts[pending.generation] = count > 1 ? count - 1 : nil }
    return pending
  }

  /// A session is over; its reports still come.
  mutating func forget(_ generation: UInt64) { counts[generation] = nil }
}
