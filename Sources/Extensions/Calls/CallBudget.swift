/// The time for all extensions of one notification together. A value, in the milliseconds of a loop's clock.
public struct CallBudget: Sendable, Equatable {
  /// The maximum for one extension, and for all those of a notification together.
  public static var longestMilliseconds: Int { 30_000 }

  /// The share of one call.
  public struct Share: Sendable, Equatable {
    /// The times from now until the warning of the extension, and until its end.
    public let warningMilliseconds, milliseconds: Int
  }

  private let end: UInt64

  /// The budget of a notification whose first extension is called now.
  ///
  /// - Parameters:
  ///   - lifetime: how long it may still be shown, in milliseconds. It is judged before that ends, however slow its extensions are.
  ///   - limit: the maximum, in milliseconds.
  public init(at now: UInt64, lifetime: Int64, atMost limit: Int = longestMilliseconds) {
    let kept = min(1_000, max(0, lifetime) / 4)
    end = now + UInt64(min(Int64(max(0, limit)), max(0, lifetime) - kept))
  }

  /// The share of the next extension.
  ///
  /// - Parameter limit: the maximum of its own setting, in milliseconds.
  /// - Returns: nil if no time is left.
  public func share(at now: UInt64, atMost limit: Int) -> Share? {
    guard now < end else { return nil }
    let milliseconds = min(limit, Int(end - now))
    return Share(warningMilliseconds: milliseconds - min(1_000, (milliseconds + 9) / 10), milliseconds: milliseconds)
  }
}
