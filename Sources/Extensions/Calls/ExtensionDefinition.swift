public import EventLoop

/// An extension that may take its time, as the extensions' file defines it: each lane makes its own of it.
public final class ExtensionDefinition: Sendable {
  /// What is shown where it does not come to its end.
  public enum Unfinished: String, Sendable, CaseIterable {
    /// What it has by then.
    case bestAttempt = "best-attempt"
    /// What it was given.
    case original
  }

  /// For whom of those who get a notification it is called.
  public enum Scope: String, Sendable, CaseIterable {
    /// Once for all of them.
    case request
    /// Once for all devices with the same locale.
    case locale
    /// For each device.
    case device
  }

  /// What holds for its calls.
  public struct Limits: Sendable, Equatable {
    /// How long one may take, in milliseconds: 1 to ``CallBudget/longestMilliseconds``.
    public var budgetMilliseconds = 10_000
    /// How many may be under way in one lane.
    public var concurrency = 256
    /// After how many failures in a row it is not asked for a while; 0: it is always asked.
    public var breaker = 10
    /// For whom it is called.
    public var scope = Scope.request
    /// What is shown where it does not come to its end.
    public var unfinished = Unfinished.bestAttempt

    /// The defaults.
    public init() {}
  }

  /// What holds for its calls.
  public let limits: Limits
  private let make: @Sendable (EventLoop) -> any ServiceExtension

  /// - Parameter make: makes the extension of a lane that lives on this loop; called there.
  public init(_ limits: Limits = Limits(), _ make: @escaping @Sendable (EventLoop) -> any ServiceExtension) {
    (self.limits, self.make) = (limits, make)
  }

  func make(on loop: EventLoop) -> any ServiceExtension { make(loop) }
}
