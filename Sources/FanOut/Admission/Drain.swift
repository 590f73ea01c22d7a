import EventLoop

/// The drain of a lane. It sends its devices away one by one, no faster than the ceiling.
struct Drain {
  /// How long a device that was sent away may still acknowledge, in milliseconds.
  private static let goAwayMilliseconds = 500
  private static let stepNanoseconds: UInt64 = 10_000_000

  private let loop: EventLoop
  private let sessions: Sessions
  private let serving: Int
  private var plan: DrainPlan
  /// Sessions that were sent away and still have unacknowledged notifications, each with its deadline.
  private var leaving: [(session: Session, until: Int)] = []

  /// - Parameter milliseconds: the time for the whole end of the lane. A part of it is reserved for the steps after the devices.
  init(on loop: EventLoop, _ sessions: Sessions, _ settings: FanOutSettings, withinMilliseconds milliseconds: Int) {
    self.loop = loop
    self.sessions = sessions
    serving = milliseconds - min(milliseconds / 2, 8_000)
    plan = DrainPlan(
      sessions.generations, perSecond: settings.limits.reconnectsPerSecond, overMilliseconds: settings.limits.reconnectMilliseconds,
      servingMilliseconds: serving)
  }

  /// Sends all devices away, spread over time.
  mutating func run() async {
    let beginning = loop.milliseconds()
    while !plan.isDone || !leaving.isEmpty {
      let elapsed = Int(loop.milliseconds() - min(beginning, loop.milliseconds()))
      for each in plan.due(at: elapsed) {
        guard let session = sessions[each.generation], session.drain(retryAfter: each.reconnectAfter) else { continue }
        leaving.append((session, min(elapsed + Self.goAwayMilliseconds, serving)))
      }
      leaving.removeAll { $0.session.hasDrained(mustEnd: elapsed >= $0.until) }
      if plan.isDone, leaving.isEmpty { break }
      // `sleep(for:)` of Swift 6.3 does not return to the caller's executor if the task has no preferred one.
      try? await Task.sleep(nanoseconds: Self.stepNanoseconds)
    }
  }
}
