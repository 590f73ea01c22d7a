import Notifications

/// When each session of a draining lane ends, and when its device reconnects. A value.
///
/// The returns are spread evenly over a window in which no second exceeds the ceiling. Each device returns at a random moment of its own
/// share. It is served until that moment. If that moment is after the drain's end, the device is sent away earlier and gets the time to
/// wait.
struct DrainPlan {
  /// A session that must end now.
  struct GoAway: Equatable {
    let generation: UInt64
    /// When its device reconnects, in milliseconds after the session's end.
    let reconnectAfter: Int
  }

  /// By time, the last one first.
  private var moments: [(generation: UInt64, at: Double)]
  private let servingMilliseconds: Int

  /// - Parameters:
  ///   - sessions: in any order.
  ///   - perSecond: the most returns in a second.
  ///   - overMilliseconds: the shortest time to spread the returns over.
  ///   - servingMilliseconds: how long sessions may still be served.
  init(_ sessions: some Sequence<UInt64>, perSecond: Int, overMilliseconds: Int, servingMilliseconds: Int) {
    let order = sessions.shuffled()
    // No device stays away longer. If there are too many devices, they reconnect faster than the ceiling.
    let planned = max(Double(overMilliseconds), Double(order.count) * 1000 / Double(max(1, perSecond)))
    let window = min(planned, Double(Reconnection.longestTold))
    let share = window / Double(max(1, order.count))
    moments = order.enumerated().reversed().map { index, generation in
      (generation, (Double(index) + Double.random(in: 0..<1)) * share)
    }
    self.servingMilliseconds = servingMilliseconds
  }

  /// Whether all sessions have been sent away.
  var isDone: Bool { moments.isEmpty }

  /// Returns the sessions that must end by now.
  ///
  /// - Parameter elapsed: milliseconds since the drain began.
  mutating func due(at elapsed: Int) -> [GoAway] {
    var goAways: [GoAway] = []
    while let moment = moments.last, moment.at <= Double(elapsed) || elapsed >= servingMilliseconds {
      moments.removeLast()
      goAways.append(GoAway(generation: moment.generation, reconnectAfter: max(0, Int(moment.at) - elapsed)))
    }
    return goAways
  }
}
