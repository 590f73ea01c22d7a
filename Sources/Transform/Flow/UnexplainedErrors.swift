/// Errors of calls for one record alone that do not say whether a retry can help. A check of the store tells.
struct UnexplainedErrors {
  /// Those that came since the last check began.
  private var noted: [Slot: String] = [:]
  /// Those before.
  private var checked: [Slot: String] = [:]

  mutating func note(_ slot: Slot, _ message: String) { noted[slot] = message }

  /// A check begins: it explains the errors that have come so far.
  mutating func checkBegins() {
    checked.merge(noted) { $1 }
    noted = [:]
  }

  /// The check has ended.
  ///
  /// - Returns: the errors that it explains, and whether others have come since, which another check has to explain.
  mutating func checkEnded() -> (explained: [Slot: String], isAnotherDue: Bool) {
    defer { checked = [:] }
    return (checked, !noted.isEmpty)
  }

  /// The record has ended.
  mutating func forget(_ slot: Slot) {
    if !noted.isEmpty { noted[slot] = nil }
    if !checked.isEmpty { checked[slot] = nil }
  }
}
