import EventLoop
import HTTP
import Worker

/// Decides who may connect, when each hello is processed, and who must retry later.
final class Admission {
  /// Whether devices are admitted.
  private enum Phase {
    /// A dependency of the devices is down.
    case suspended
    case open
    /// The lane is draining.
    case draining
  }

  private let loop: EventLoop
  private let settings: FanOutSettings
  private let metrics: FanOutMetrics
  private let logger: Logger
  private var told = ToldRefusals()
  private var phase = Phase.suspended
  private var gate: AdmissionGate
  private let timer: Timer
  /// The server's counts of a second ago.
  private var counted: [(server: HTTPServerStatistics, tls: TLSStatistics)] = []
  /// Gets the decisions.
  weak var owner: FanOutCore?

  private static let stepMilliseconds = 10

  init(on loop: EventLoop, _ settings: FanOutSettings, logger: Logger, metrics: FanOutMetrics) {
    self.loop = loop
    self.settings = settings
    self.logger = logger
    self.metrics = metrics
    gate = AdmissionGate(perSecond: settings.limits.reconnectsPerSecond, waitMilliseconds: settings.limits.helloSeconds * 500)
    timer = Timer(on: loop)
    timer.handler = { [unowned self] in advance() }
  }

  // MARK: Connections

  /// Notes that a dependency of the devices is down, or up again.
  func suspend(_ isSuspended: Bool) {
    if phase != .draining { phase = isSuspended ? .suspended : .open }
  }

  /// Refuses every device from now on, because the lane drains.
  func drain() { phase = .draining }

  /// Stops the timer.
  func close() { timer.close() }

  /// Decides on an upgrade, before a session exists; nil: the device may connect.
  func refusal(of request: HTTPRequest) -> WebSocketAdmission? {
    let origins = OriginRule(allowed: settings.allowedOrigins)
    if let refusal = origins.refusal(of: request.headers.values(of: "Origin"), host: request.headers["Host"]) {
      metrics.limited(.origins)
      // The page itself cannot see why, and tries again and again.
      if told.isNew(refusal) { logger.warning("a web page may not connect", ["reason": String(refusal.dropLast())]) }
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

  /// Reserves a time at which a refused device reconnects: milliseconds from now.
  ///
  /// - Parameter milliseconds: the earliest time at which a retry makes sense.
  func retryAfter(atLeast milliseconds: Int) -> Int { gate.retryAfter(now: loop.milliseconds(), atLeast: milliseconds) }

  /// Counts what the servers themselves have refused or done since the last call, in the same order each time.
  func count(_ servers: [HTTPServer]) {
    for (index, server) in servers.enumerated() {
      let (now, tls) = (server.statistics, server.tlsStatistics)
      let before = index < counted.count ? counted[index] : (server: HTTPServerStatistics(), tls: TLSStatistics())
      metrics.limited(.connections, by: now.overLimit - before.server.overLimit)
      metrics.limited(.descriptors, by: now.overDescriptors - before.server.overDescriptors)
      metrics.limited(.addressConnections, by: now.overAddressLimit - before.server.overAddressLimit)
      metrics.limited(.handshakes, by: tls.waits - before.tls.waits)
      metrics.count(tls, since: before.tls)
    }
    counted = servers.map { ($0.statistics, $0.tlsStatistics) }
  }

  // MARK: Hellos

  /// Takes a new hello: admits it, lets it wait, or refuses it.
  func arrived(_ generation: UInt64) {
    switch gate.arrived(generation, now: loop.milliseconds()) {
    case .enter: owner?.admitted(generation)
    // The timer runs while any hello waits. If each hello restarted it, it would never fire under load.
    case .wait: if gate.waitingCount == 1 { timer.start(after: Self.stepMilliseconds, repeating: Self.stepMilliseconds) }
    case .refuse(let milliseconds): refuse(generation, retryAfter: milliseconds)
    }
    metrics.waitingHellos.set(gate.waitingCount)
  }

  /// Notes that a hello is finished or waits for Kafka, so the next one may begin.
  func ended() {
    gate.ended()
    if gate.waitingCount > 0 { advance() }
  }

  /// Admits hellos whose turn has come, and refuses those that have waited too long.
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
