/// What became of a notification at one service extension. The raw value stands in stored records: never renumber.
public enum ExtensionState: UInt8, Sendable, CaseIterable {
  /// It has changed the content.
  case modified = 1
  /// It has finished, and left the content as it was.
  case unchanged = 2
  /// It did not finish, and what it had by then is used.
  case bestAttempt = 3
  /// It does not concern the content, or its own setting says that the content stays as it was given.
  case original = 4
  /// It did not finish in time, and had nothing: the content stays as it was given.
  case timedOut = 5
  /// It has failed, or what it returned breaks a rule: the content stays as it was given.
  case failed = 6
  /// It was not called, since too much was under way, or since it has failed too often of late.
  case overloaded = 7

  /// The word of records and tools.
  public var word: StaticString {
    switch self {
    case .modified: "modified"
    case .unchanged: "unchanged"
    case .bestAttempt: "best-attempt"
    case .original: "original"
    case .timedOut: "timed-out"
    case .failed: "failed"
    case .overloaded: "overloaded"
    }
  }
}
