/// Limits how many commands are sent in a second. A value without a clock.
package struct CommandPace: Sendable {
  private let nanoseconds: Int64
  private var next = Int64.min

  /// - Parameters:
  ///   - perSecond: the most commands within any second.
  ///   - largest: the most commands that are sent at once.
  package init(perSecond: Int, largest: Int) {
    precondition(largest >= 1 && perSecond >= largest, "the commands sent at once must fit into a second")
    // The last call of a second may reach beyond it with all its commands but the first.
    nanoseconds = (1_000_000_000 - 1) / Int64(perSecond - largest + 1) + 1
  }

  /// Answers how long to wait before sending this many commands, in nanoseconds. The caller must send them then.
  package mutating func wait(for commands: Int, at now: Int64) -> Int64 {
    let moment = max(next, now)
    next = moment + Int64(commands) * nanoseconds
    return moment - now
  }
}
