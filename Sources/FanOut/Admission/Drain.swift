import EventLoop

/// How a lane goes down: its devices are served until each one's moment has come, and reconnect elsewhere no faster than the ceiling.
struct Drain {
  /// How long a device that is going may take to acknowledge what it was sent, in milliseconds.
  private static let goAwayMilliseconds = 500
  private static let stepNanoseconds: UInt64 = 10_000_000

  private let loop: EventLoop
  private let sessions: Sessions
  private let serving: Int
  private var plan: DrainPlan
  /// Sessions that were told to go and have not acknowledged all yet, and until when they may.
  private var leaving: [(session: Session, until: Int)] = []

  /// - Parameter milliseconds: for all of the lane's end; a part of it is kept for what follows the devices.
  init(on loop: EventLoop, _ sessions: Sessions, _ settings: FanOutSettings, withinMilliseconds milliseconds: Int) {
    self.loop = loop
    self.sessions = sessions
    serving = milliseconds - min(milliseconds / 2, 8_000)
    plan = DrainPlan(
      sessions.generations, perSecond: settings.reconnectsPerSecond, overMilliseconds: settings.reconnectMilliseconds,
      servingMilliseconds: serving)
  }

  /// Tells all devices to go, spread over time.
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
      // Not `sleep(for:)`, from which Swift 6.3 does not come back to the caller's executor where the task prefers none.
      try? await Task.sleep(nanoseconds: Self.stepNanoseconds)
    }
  }
}
