import EventLoop
import HTTP
import JSON
import Notifications
import Store
import Worker

/// What happens at the lane's bounds: who waits, who is told to come back, and when.
extension FanOutCore {
  /// The hello has come: it enters, waits for its turn, or is told when to come back.
  func enter(_ session: Session) {
    switch gate.arrived(session.generation, now: loop.milliseconds()) {
    case .enter: runTask?(.enter(session.generation))
    case .wait: gateTimer.start(after: Self.gateMilliseconds, repeating: Self.gateMilliseconds)
    case .refuse(let milliseconds):
      metrics.limited(.hellos)
      goAway(session, .serviceUnavailable, retryAfter: milliseconds)
    }
    metrics.waitingHellos.set(gate.waitingCount)
  }

  static let gateMilliseconds = 10

  /// Lets in whose turn has come, and sends away who has waited too long.
  func advanceGate() {
    let now = loop.milliseconds()
    while let late = gate.overdue(now: now) {
      guard let session = sessions[late.generation], session.isEntering else { continue }
      metrics.limited(.hellos)
      goAway(session, .serviceUnavailable, retryAfter: late.retryAfter)
    }
    while let generation = gate.next(now: now, isThere: { sessions[$0]?.isEntering ?? false }) { runTask?(.enter(generation)) }
    if gate.waitingCount == 0 { gateTimer.stop() }
    metrics.waitingHellos.set(gate.waitingCount)
  }

  /// A hello is in, out, or waits for Kafka: the next may begin.
  func admissionEnded() {
    gate.ended()
    if gate.waitingCount > 0 { advanceGate() }
  }

  /// Judges an upgrade, before there is a session.
  func admit(_ request: HTTPRequest) -> WebSocketAdmission {
    // Browsers name the page that connects, and devices none: a page must not speak for whoever looks at it.
    guard settings.allowedOrigins.contains("*") || request.headers.values(of: "Origin").allSatisfy(isAllowed) else {
      metrics.limited(.origins)
      return .refuse(.forbidden, "Pages of this origin may not connect: --allowed-origins does not list it.\n")
    }
    let now = loop.milliseconds()
    if isDraining || !shards.isUp { return refusal(gate.retryAfter(now: now, atLeast: isDraining ? 1000 : 5000)) }
    if gate.isFull {
      metrics.limited(.hellos)
      return refusal(gate.retryAfter(now: now))
    }
    // The present second has partly passed: a hello has its whole time.
    return .accept(Session(self, generation: newGeneration(), helloDeadline: seconds + 1 + UInt32(settings.helloSeconds)))
  }

  private func isAllowed(_ origin: String) -> Bool { settings.allowedOrigins.contains(origin.lowercased()) }

  private func refusal(_ milliseconds: Int) -> WebSocketAdmission {
    .refuse(.serviceUnavailable, "Come back later.\n", retryAfterSeconds: (milliseconds + 999) / 1000)
  }

  /// Ends a session and says when its device is to come back; what was sent before still goes out.
  func goAway(_ session: Session, _ code: CloseCode, retryAfter milliseconds: Int) {
    frames.reset()
    ServerFrames.goaway(reconnectAfterMilliseconds: milliseconds, reason: "\(code.name)", to: &frames)
    session.connection?.send(frame())
    session.close(code, pending: .sent)
  }

  /// Ends a session since the lane has no room for what it asks.
  func goAway(_ session: Session, at limit: Limit) {
    metrics.limited(limit)
    goAway(session, .serviceUnavailable, retryAfter: gate.retryAfter(now: loop.milliseconds(), atLeast: 5000))
  }

  /// What the server refused by itself since the last look.
  func countRefusals(_ statistics: HTTPServerStatistics) {
    metrics.limited(.connections, by: statistics.overLimit - counted.overLimit)
    metrics.limited(.addressConnections, by: statistics.overAddressLimit - counted.overAddressLimit)
    counted = statistics
  }
}

/// The lane's bounds that turn something away, as its metric names them.
enum Limit: String, CaseIterable {
  /// Connections of the lane: 503.
  case connections
  /// Connections of one address: 429.
  case addressConnections = "connections_of_address"
  /// Web pages of origins that are not allowed: 403.
  case origins
  /// Hellos that wait: 503, or `goaway` and 4009.
  case hellos
  /// Registrations that wait for Kafka: `goaway` and 4009.
  case registrations
  /// A session's changes that wait for Kafka: 4012.
  case changes
  /// A connection's frames before its hello, or in a second after it: 4012.
  case frames
  /// A session's responses that wait for Kafka: 4015.
  case responses
  /// Kafka's queue: the event is said again, or the device sends its response again.
  case events
  /// Acknowledgements that wait for Kafka: `goaway` and 4009; what they were for stays in the mailbox.
  case acknowledgements
}

/// More asks for something than the lane has room for.
struct Overload: Error, CustomStringConvertible {
  let limit: Limit
  /// Later there is room.
  var isRetriable: Bool { true }
  var description: String { "the lane has no room for more \(limit.rawValue) now: the device is told to come back later" }
}
