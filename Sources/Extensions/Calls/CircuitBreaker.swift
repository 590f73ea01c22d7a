/// Keeps an extension that has failed again and again from being asked for a while, and then lets one call find out whether it works again:
/// a value, in the milliseconds of a loop's clock.
struct CircuitBreaker: Equatable {
  /// What it is doing.
  private enum Phase: Equatable {
    /// Calls are made; so many of them in a row have failed.
    case closed(failures: Int)
    /// None is made until then.
    case open(until: UInt64)
    /// One is under way that shows what holds.
    case trying
  }

  /// How long it stays open at first, and at most; each trial that fails doubles it.
  static let (firstMilliseconds, longestMilliseconds): (UInt64, UInt64) = (1_000, 30_000)

  /// Failures in a row that open it; 0: it never opens.
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

  /// A call is going to be made, since it is not open; the first one after it was shows what holds.
  ///
  /// - Returns: whether it is that one.
  mutating func begin() -> Bool {
    guard case .open = phase else { return false }
    phase = .trying
    return true
  }

  /// A call has come to its end.
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

  /// The call that was to show what holds was given up before it could: the next one shows it.
  mutating func abandoned(isTrial: Bool, at now: UInt64) {
    if isTrial, phase == .trying { phase = .open(until: now) }
  }
}
