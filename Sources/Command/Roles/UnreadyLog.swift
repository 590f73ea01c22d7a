import Worker

/// Selects the unready conditions to log, and those that are ready again. A value.
struct UnreadyLog {
  private struct Key: Hashable {
    let name: String
    let lane: String
  }

  private var told: [Key: Health.Unready] = [:]

  /// How long a condition must last before it is logged, in milliseconds. A rebalance or a broker's restart takes less.
  private static let lastingMilliseconds: Int64 = 10_000

  /// Returns the conditions that have just reached that age, and those of them that have ended. The process's end is not reported.
  mutating func look(_ unready: [Health.Unready], at now: Int64) -> (lasting: [Health.Unready], ended: [Health.Unready]) {
    let present = Dictionary(unready.map { (Key(name: $0.name, lane: $0.lane), $0) }) { first, _ in first }
    let ended = told.filter { present[$0.key] == nil }
    for key in ended.keys { told[key] = nil }
    let lasting = unready.filter { condition in
      let key = Key(name: condition.name, lane: condition.lane)
      guard condition.name != "draining", now - condition.since >= Self.lastingMilliseconds, told[key] == nil else { return false }
      told[key] = condition
      return true
    }
    return (lasting, ended.values.sorted { ($0.lane, $0.name) < ($1.lane, $1.name) })
  }
}
