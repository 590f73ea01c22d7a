import Notifications

/// What has come from URLs of late, so that a thousand notifications with the same one have it fetched once: a value, in the milliseconds of
/// a loop's clock.
struct RecentMedia {
  /// What came, or why nothing did.
  typealias Outcome = Result<Media, ExtensionFailure>

  /// For how long a failure is not tried again: long enough for those who ask at the same time.
  static let failureMilliseconds: UInt64 = 2_000

  private let maximum: Int
  private let lifetime: UInt64
  private var known: [Name: (outcome: Outcome, end: UInt64)] = [:]

  /// - Parameters:
  ///   - maximum: URLs that are remembered; when there are more, those go first whose time is up, and then all.
  ///   - milliseconds: for how long a file is taken to be the same.
  init(maximum: Int = 1_024, milliseconds: Int) { (self.maximum, lifetime) = (maximum, UInt64(max(0, milliseconds))) }

  /// What came from a URL; nil where it is to be fetched.
  func outcome(_ url: Name, at now: UInt64) -> Outcome? {
    guard let entry = known[url], now < entry.end else { return nil }
    return entry.outcome
  }

  /// Remembers what came.
  mutating func remember(_ url: Name, _ outcome: Outcome, at now: UInt64) {
    if known.count >= maximum, known[url] == nil {
      known = known.filter { now < $0.value.end }
      if known.count >= maximum { known.removeAll(keepingCapacity: true) }
    }
    let isFailure = if case .failure = outcome { true } else { false }
    known[url] = (outcome, now + (isFailure ? min(lifetime, Self.failureMilliseconds) : lifetime))
  }

  /// What came is not there any more.
  mutating func forget(_ url: Name) { known[url] = nil }
}
