import EventLoop
import HTTP
import JSON
import Notifications

/// How a lane goes down: its devices are served until each one's moment has come, and come back elsewhere no faster than the ceiling.
extension FanOutCore {
  /// How long a device that is going may take to acknowledge what it was sent, in milliseconds.
  private static let goAwayMilliseconds = 500
  private static let stepNanoseconds: UInt64 = 10_000_000

  /// Sends all devices away, spread over time.
  ///
  /// - Parameter milliseconds: for all of the drain; a part of it is kept for what follows the devices.
  func allGoAway(withinMilliseconds milliseconds: Int) async {
    let serving = milliseconds - min(milliseconds / 2, 8_000)
    var plan = DrainPlan(
      sessions.keys, perSecond: settings.reconnectsPerSecond, overMilliseconds: settings.reconnectMilliseconds,
      servingMilliseconds: serving)
    var leaving: [(generation: UInt64, until: Int)] = []
    let beginning = loop.milliseconds()
    while !plan.isDone || !leaving.isEmpty {
      let elapsed = Int(loop.milliseconds() - min(beginning, loop.milliseconds()))
      for each in plan.due(at: elapsed) where isLeaving(each) {
        leaving.append((each.generation, min(elapsed + Self.goAwayMilliseconds, serving)))
      }
      leaving.removeAll { hasLeft($0.generation, at: elapsed, until: $0.until) }
      if plan.isDone, leaving.isEmpty { break }
      // Not `sleep(for:)`, from which Swift 6.3 does not come back to the caller's executor where the task prefers none.
      try? await Task.sleep(nanoseconds: Self.stepNanoseconds)
    }
  }

  /// Tells a device to go; whether its session still waits for acknowledgements.
  private func isLeaving(_ due: DrainPlan.GoAway) -> Bool {
    guard let session = sessions[due.generation] else { return false }
    guard let open = session.open, open.flow.unacknowledged > 0 else {
      goAway(session, .draining, retryAfter: due.reconnectAfter)
      return false
    }
    open.isLeaving = true
    frames.reset()
    ServerFrames.goaway(reconnectAfterMilliseconds: due.reconnectAfter, reason: "\(CloseCode.draining.name)", to: &frames)
    session.connection?.send(frame())
    return true
  }

  private func hasLeft(_ generation: UInt64, at elapsed: Int, until: Int) -> Bool {
    guard let session = sessions[generation], let open = session.open else { return true }
    guard open.flow.unacknowledged == 0 || elapsed >= until else { return false }
    session.close(.draining, pending: .sent)
    return true
  }
}
