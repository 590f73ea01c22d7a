public import EventLoop

/// A slow extension as the extensions' file defines it. Each lane makes its own copy.
public final class ExtensionDefinition: Sendable {
  /// What is shown if it does not finish.
  public enum Unfinished: String, Sendable, CaseIterable {
    /// Its best attempt.
    case bestAttempt = "best-attempt"
    /// The given content.
    case original
  }

  /// How often it is called for the recipients of a notification.
  public enum Scope: String, Sendable, CaseIterable {
    /// Once for all of them.
    case request
    /// Once for all devices with the same locale.
    case locale
    /// For each device.
    case device
  }

  /// The limits of its calls.
  public struct Limits: Sendable, Equatable {
    /// The time limit of one call, in milliseconds: 1 to ``CallBudget/longestMilliseconds``.
    public var budgetMilliseconds = 10_000
    /// The most running calls in one lane.
    public var concurrency = 256
    /// The consecutive failures that stop calls for a while; 0 for never.
    public var breaker = 10
    /// How often it is called.
    public var scope = Scope.request
    /// What is shown if it does not finish.
    public var unfinished = Unfinished.bestAttempt

    /// The defaults.
    public init() {}
  }

  /// The limits of its calls.
  public let limits: Limits
  let make: @Sendable (EventLoop) -> any ServiceExtension

  /// - Parameter make: makes the extension of a lane on its loop.
  public init(_ limits: Limits = Limits(), _ make: @escaping @Sendable (EventLoop) -> any ServiceExtension) {
    (self.limits, self.make) = (limits, make)
  }
}
