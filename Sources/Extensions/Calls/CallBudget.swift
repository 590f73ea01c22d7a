/// How long the extensions of one notification may take together: a value, in the milliseconds of a loop's clock.
public struct CallBudget: Sendable, Equatable {
  /// The maximum for one extension, and for all those of a notification together.
  public static var longestMilliseconds: Int { 30_000 }

  /// What one call gets of it.
  public struct Share: Sendable, Equatable {
    /// When the extension is told that its time will expire, and when it has expired; from now on.
    public let warningMilliseconds, milliseconds: Int
  }

  private let end: UInt64

  /// A notification whose first extension is called now.
  ///
  /// - Parameter lifetime: how long it may be shown from now on, in milliseconds: it is judged before that ends, however slow its extensions.
  public init(at now: UInt64, lifetime: Int64) {
    let kept = min(1_000, max(0, lifetime) / 4)
    end = now + UInt64(min(Int64(Self.longestMilliseconds), max(0, lifetime) - kept))
  }

  /// What the next extension gets.
  ///
  /// - Parameter limit: the maximum by its own setting, in milliseconds.
  /// - Returns: nil where no time is left.
  public func share(at now: UInt64, atMost limit: Int) -> Share? {
    guard now < end else { return nil }
    let milliseconds = min(limit, Int(end - now))
    return Share(warningMilliseconds: milliseconds - min(1_000, (milliseconds + 9) / 10), milliseconds: milliseconds)
  }
}
