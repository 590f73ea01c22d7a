/// How much a log line matters, least first.
public enum LogLevel: String, CaseIterable, Sendable, Comparable {
  /// For whoever looks for a fault; off in production.
  case debug
  /// What an operator wants to have read afterwards.
  case info
  /// Something is not as it should be, and the program deals with it.
  case warning
  /// Something was not done, and somebody has to act.
  case error

  private var rank: Int {
    switch self {
    case .debug: 0
    case .info: 1
    case .warning: 2
    case .error: 3
    }
  }

  /// By how much they matter.
  public static func < (first: LogLevel, second: LogLevel) -> Bool { first.rank < second.rank }
}
