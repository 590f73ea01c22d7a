/// Stops calls of an extension that fails repeatedly, and later tries a single call. A value, in the milliseconds of a loop's clock.
struct CircuitBreaker: Equatable {
  /// The states.
  private enum Phase: Equatable {
    /// Calls are made. With the number of consecutive failures.
    case closed(failures: Int)
    /// No calls until this time.
    case open(until: UInt64)
    /// One trial call is running.
    case trying
  }

  /// The first and the longest open time; each failed trial doubles it.
  static let (firstMilliseconds, longestMilliseconds): (UInt64, UInt64) = (1_000, 30_000)

  /// The consecutive failures that open it; 0 for never.
  private let limit: Int
  private var phase = Phase.closed(failures: 0)
  private var wait = CircuitBreaker.firstMilliseconds

  init(limit: Int) { self.limit = limit }

  /// Whether no call is made at present.
  func isOpen(at now: UInt64) -> Bool {
    switch phase {
    case .closed: false
    case .open(let until): now < until
    case .trying: true
    }
  }

  /// Begins a call, since it is not open. The first one after it was open is a trial.
  ///
  /// - Returns: whether it is the trial.
  mutating func begin() -> Bool {
    guard case .open = phase else { return false }
    phase = .trying
    return true
  }

  /// A call has succeeded.
  mutating func succeeded(isTrial: Bool) {
    switch phase {
    case .closed: phase = .closed(failures: 0)
    case .trying where isTrial: (phase, wait) = (.closed(failures: 0), Self.firstMilliseconds)
    case .trying, .open: break
    }
  }

  /// A call has failed, or did not end in time.
  mutating func failed(isTrial: Bool, at now: UInt64) {
    switch phase {
    case .closed(let failures):
      guard limit > 0, failures + 1 >= limit else { return phase = .closed(failures: min(failures + 1, limit)) }
      phase = .open(until: now + wait)
    case .trying where isTrial:
      wait = min(2 * wait, Self.longestMilliseconds)
      phase = .open(until: now + wait)
    case .trying, .open: break
    }
  }

  /// The trial was given up before its result: the next call is the trial.
  mutating func abandoned(isTrial: Bool, at now: UInt64) {
    if isTrial, phase == .trying { phase = .open(until: now) }
  }
}
