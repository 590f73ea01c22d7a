import Notifications

/// The recent results of URLs, so that a thousand notifications with the same URL fetch it once. A value, in the milliseconds of a loop's
/// clock.
struct RecentMedia {
  /// The file, or the failure.
  typealias Outcome = Result<Media, ExtensionFailure>

  /// How long a failure is used again: long enough for simultaneous calls.
  static let failureMilliseconds: UInt64 = 2_000

  private let maximum: Int
  private let lifetime: UInt64
  private var known: [Name: (outcome: Outcome, end: UInt64)] = [:]

  /// - Parameters:
  ///   - maximum: the most URLs. Beyond it expired ones are removed, and then all.
  ///   - milliseconds: how long a file is taken to be unchanged.
  init(maximum: Int = 1_024, milliseconds: Int) { (self.maximum, lifetime) = (maximum, UInt64(max(0, milliseconds))) }

  /// The result of a URL; nil if it must be fetched.
  func outcome(_ url: Name, at now: UInt64) -> Outcome? {
    guard let entry = known[url], now < entry.end else { return nil }
    return entry.outcome
  }

  /// Stores a result.
  mutating func remember(_ url: Name, _ outcome: Outcome, at now: UInt64) {
    if known.count >= maximum, known[url] == nil {
      known = known.filter { now < $0.value.end }
      if known.count >= maximum { known.removeAll(keepingCapacity: true) }
    }
    let isFailure = if case .failure = outcome { true } else { false }
    known[url] = (outcome, now + (isFailure ? min(lifetime, Self.failureMilliseconds) : lifetime))
  }

  /// Removes a result, because its file has gone.
  mutating func forget(_ url: Name) { known[url] = nil }
}
