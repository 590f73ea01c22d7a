/// Errors of calls for one record alone that do not say whether a retry can help. A check of the store tells.
struct UnexplainedErrors {
  /// An error of a record, which is known by how many were begun before it.
  typealias Noted = (order: UInt64, message: String)

  /// Those that came since the last check began.
  private var noted: [Slot: Noted] = [:]
  /// Those before.
  private var checked: [Slot: Noted] = [:]

  mutating func note(_ slot: Slot, order: UInt64, _ message: String) { noted[slot] = (order, message) }

  /// A check begins: it explains the errors that have come so far.
  mutating func checkBegins() {
    checked.merge(noted) { $1 }
    noted = [:]
  }

  /// The check has ended.
  ///
  /// - Returns: the errors that it explains, and whether others have come since, which another check has to explain.
  mutating func checkEnded() -> (explained: [Slot: Noted], isAnotherDue: Bool) {
    defer { checked = [:] }
    return (checked, !noted.isEmpty)
  }
}
