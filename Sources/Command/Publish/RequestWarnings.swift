import Notifications

/// Prints each different warning about requests once on standard error.
struct RequestWarnings {
  private var told: Set<Name> = []
  /// The most different warnings that are printed.
  private static let maximum = 1_000

  /// - Parameter line: the request's line; 0 for flags.
  mutating func tell(_ warnings: [String], line: Int) {
    for warning in warnings where told.count < Self.maximum && told.insert(Name(warning)).inserted {
      StandardError.line((line > 0 ? "line \(line): " : "") + "warning: \(warning)")
    }
  }
}
