public import Notifications

/// When a notification must not be shown any more.
public struct ExpirationRule: Sendable {
  /// How many seconds after its publication a request with `apns-expiration: 0` may still be tried.
  public var oneAttemptSeconds: Int64
  /// The default of `oneAttemptSeconds`.
  public static let oneAttemptSeconds: Int64 = 30

  /// Makes the rule.
  public init(oneAttemptSeconds: Int64 = ExpirationRule.oneAttemptSeconds) { self.oneAttemptSeconds = oneAttemptSeconds }

  /// The second from which on it must not be shown.
  ///
  /// - Parameters:
  ///   - expiration: seconds since 1970; 0 for one attempt.
  ///   - published: milliseconds since 1970.
  public func end(expiration: Int64, published: Int64) -> Int64 { expiration == 0 ? published / 1000 + oneAttemptSeconds : expiration }

  /// Whether an entry must not be shown any more.
  public func isPast(_ entry: DeliveryEntryView, now: Int64) -> Bool {
    end(expiration: entry.expiration, published: min(entry.source.timestamp, entry.published)) <= now
  }
}
