/// Errors of calls for one record alone that do not say whether a retry can help. A check of the store tells.
struct UnexplainedErrors {
  /// An error of a record, which is known by how many were begun before it.
  private typealias Noted = (order: UInt64, message: String)

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

  /// The check has ended. Errors of records that are no longer in flight need no explanation.
  ///
  /// - Returns: the errors that it explains, and whether others have come since, which another check has to explain.
  mutating func checkEnded(
    _ isInFlight: (Slot, _ order: UInt64) -> Bool
  ) -> (explained: [(slot: Slot, message: String)], isAnotherDue: Bool) {
    noted = noted.filter { isInFlight($0.key, $0.value.order) }
    defer { checked = [:] }
    return (checked.filter { isInFlight($0.key, $0.value.order) }.map { ($0.key, $0.value.message) }, !noted.isEmpty)
  }
}
