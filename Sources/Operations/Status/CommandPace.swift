/// When the next commands may be sent, so that there are never more in a second than allowed. A value; it knows no clock.
public struct CommandPace: Sendable {
  private let nanoseconds: Int64
  private var next = Int64.min

  /// - Parameters:
  ///   - perSecond: commands that may begin within any second.
  ///   - largest: commands that are sent at once at most.
  public init(perSecond: Int, largest: Int) {
    precondition(largest >= 1 && perSecond >= largest, "what is sent at once must fit into a second")
    // The last of a second's calls may reach beyond it with all its commands but the first.
    nanoseconds = (1_000_000_000 - 1) / Int64(perSecond - largest + 1) + 1
  }

  /// How long to wait before so many commands may be sent, in nanoseconds; they are, that much later.
  public mutating func wait(for commands: Int, at now: Int64) -> Int64 {
    let moment = max(next, now)
    next = moment + Int64(commands) * nanoseconds
    return moment - now
  }
}
