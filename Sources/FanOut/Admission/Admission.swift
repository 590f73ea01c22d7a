import EventLoop
import HTTP
import Worker

/// What admission tells the lane of hellos, by the generations of their sessions.
protocol AdmissionOwner: AnyObject {
  /// The turn of a hello has come; `Admission.ended` must follow.
  func admitted(_ generation: UInt64)
  /// There is no room for a hello.
  func refused(_ generation: UInt64, retryAfter milliseconds: Int)
  /// Whether a hello still waits for its turn.
  func isWaiting(_ generation: UInt64) -> Bool
}

/// Who may connect, whose hello is worked on when, and who is told to retry later. Loop-confined.
final class Admission {
  /// Whether devices are let in.
  private enum Phase {
    /// What they need is away.
    case suspended
    case open
    /// The lane is going down.
    case draining
  }

  private let loop: EventLoop
  private let settings: FanOutSettings
  private let metrics: FanOutMetrics
  private var phase = Phase.suspended
  private var gate: AdmissionGate
  private let timer: Timer
  /// What the server had counted a second ago.
  private var counted = HTTPServerStatistics()
  /// Told whose turn has come.
  weak var owner: (any AdmissionOwner)?

  private static let stepMilliseconds = 10

  init(on loop: EventLoop, _ settings: FanOutSettings, metrics: FanOutMetrics) {
    self.loop = loop
    self.settings = settings
    self.metrics = metrics
    gate = AdmissionGate(perSecond: settings.reconnectsPerSecond, waitMilliseconds: settings.helloSeconds * 500)
    timer = Timer(on: loop)
    timer.handler = { [unowned self] in advance() }
  }

  // MARK: Connections

  /// What devices need is there, or is away.
  func suspend(_ isSuspended: Bool) {
    if phase != .draining { phase = isSuspended ? .suspended : .open }
  }

  /// The lane is going down: nobody is let in any more.
  func drain() { phase = .draining }

  /// Ends the timer.
  func close() { timer.close() }

  /// Why an upgrade is refused, before there is a session; nil: it may connect.
  func refusal(of request: HTTPRequest) -> WebSocketAdmission? {
    let origins = OriginRule(allowed: settings.allowedOrigins)
    if let refusal = origins.refusal(of: request.headers.values(of: "Origin"), host: request.headers["Host"]) {
      metrics.limited(.origins)
      return .refuse(.forbidden, refusal)
    }
    switch phase {
    case .draining: return refusal(retryAfter(atLeast: 1000))
    case .suspended: return refusal(retryAfter(atLeast: 5000))
    case .open where gate.isFull:
      metrics.limited(.hellos)
      return refusal(retryAfter(atLeast: 1000))
    case .open: return nil
    }
  }

  private func refusal(_ milliseconds: Int) -> WebSocketAdmission {
    .refuse(.serviceUnavailable, "Retry later.\n", retryAfterSeconds: (milliseconds + 999) / 1000)
  }

  /// A time of its own for a device that is told to go: milliseconds from now.
  ///
  /// - Parameter milliseconds: before which it is of no use to come.
  func retryAfter(atLeast milliseconds: Int) -> Int { gate.retryAfter(now: loop.milliseconds(), atLeast: milliseconds) }

  /// What the server refused by itself since the last call.
  func count(_ statistics: HTTPServerStatistics) {
    metrics.limited(.connections, by: statistics.overLimit - counted.overLimit)
    metrics.limited(.descriptors, by: statistics.overDescriptors - counted.overDescriptors)
    metrics.limited(.addressConnections, by: statistics.overAddressLimit - counted.overAddressLimit)
    counted = statistics
  }

  // MARK: Hellos

  /// A hello has come: it is admitted, waits for its turn, or is refused.
  func arrived(_ generation: UInt64) {
    switch gate.arrived(generation, now: loop.milliseconds()) {
    case .enter: owner?.admitted(generation)
    // It runs as long as anybody waits; started again with each it would never fire among many.
    case .wait: if gate.waitingCount == 1 { timer.start(after: Self.stepMilliseconds, repeating: Self.stepMilliseconds) }
    case .refuse(let milliseconds): refuse(generation, retryAfter: milliseconds)
    }
    metrics.waitingHellos.set(gate.waitingCount)
  }

  /// A hello is in, out, or waits for Kafka: the next may begin.
  func ended() {
    gate.ended()
    if gate.waitingCount > 0 { advance() }
  }

  /// Admits those whose turn has come, and refuses those that have waited too long.
  private func advance() {
    let now = loop.milliseconds()
    while let late = gate.overdue(now: now) {
      if isWaiting(late.generation) { refuse(late.generation, retryAfter: late.retryAfter) }
    }
    while let generation = gate.next(now: now, isThere: isWaiting) { owner?.admitted(generation) }
    if gate.waitingCount == 0 { timer.stop() }
    metrics.waitingHellos.set(gate.waitingCount)
  }

  private func isWaiting(_ generation: UInt64) -> Bool { owner?.isWaiting(generation) ?? false }

  private func refuse(_ generation: UInt64, retryAfter milliseconds: Int) {
    metrics.limited(.hellos)
    owner?.refused(generation, retryAfter: milliseconds)
  }
}
