/// The severity of a log line, least first.
public enum LogLevel: String, CaseIterable, Sendable, Comparable {
  /// For the search for a fault; off in production.
  case debug
  /// A fact that an operator may need later.
  case info
  /// A problem that the program handles.
  case warning
  /// A failure that needs an operator.
  case error

  private var rank: Int {
    switch self {
    case .debug: 0
    case .info: 1
    case .warning: 2
    case .error: 3
    }
  }

  /// Compares the severities.
  public static func < (first: LogLevel, second: LogLevel) -> Bool { first.rank < second.rank }
}
