import Worker

/// Selects the unready conditions to log, and those that are ready again. A value.
struct UnreadyLog {
  private var told: [Health.Condition] = []

  /// How long a condition must last before it is logged, in milliseconds. A rebalance or a broker's restart takes less.
  private static let lastingMilliseconds: Int64 = 10_000

  /// Returns the conditions that have just reached that age, and those of them that have ended. The process's end is not reported.
  mutating func look(
    _ unready: [Health.Condition], at now: Int64
  ) -> (lasting: [Health.Condition], ended: [Health.Condition]) {
    func isAmong(_ conditions: [Health.Condition], _ one: Health.Condition) -> Bool {
      conditions.contains { $0.name == one.name && $0.lane == one.lane }
    }
    let ended = told.filter { !isAmong(unready, $0) }
    let lasting = unready.filter { $0.name != "draining" && now - $0.since >= Self.lastingMilliseconds && !isAmong(told, $0) }
    told = told.filter { isAmong(unready, $0) } + lasting
    return (lasting, ended.sorted { ($0.lane, $0.name) < ($1.lane, $1.name) })
  }
}
