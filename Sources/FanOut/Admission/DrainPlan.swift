import Notifications

/// When each session of a lane that is going down has to go, and when its device is to reconnect: a value.
///
/// The devices' returns are spread evenly over a window in which no second has more of them than the ceiling, each at a random moment of
/// a share of its own. A device is served until its moment has come; only those whose moment lies behind the time that there is are told
/// before that to go away, and how long to wait.
struct DrainPlan {
  /// A session that has to go now.
  struct GoAway: Equatable {
    let generation: UInt64
    /// When its device is to reconnect, in milliseconds from its end.
    let reconnectAfter: Int
  }

  private struct Moment {
    let generation: UInt64
    let at: Double
  }

  /// By time, the last first.
  private var moments: [Moment]
  private let servingMilliseconds: Int

  /// - Parameters:
  ///   - sessions: in no order that matters.
  ///   - perSecond: returns in a second at most.
  ///   - overMilliseconds: what they are spread over at least.
  ///   - servingMilliseconds: how long sessions may still be served.
  init(_ sessions: some Sequence<UInt64>, perSecond: Int, overMilliseconds: Int, servingMilliseconds: Int) {
    let order = sessions.shuffled()
    // No device stays away for longer, so those that do not fit reconnect faster than the ceiling.
    let planned = max(Double(overMilliseconds), Double(order.count) * 1000 / Double(max(1, perSecond)))
    let window = min(planned, Double(Reconnection.longestTold))
    let share = window / Double(max(1, order.count))
    moments = order.enumerated().reversed().map { index, generation in
      Moment(generation: generation, at: (Double(index) + Double.random(in: 0..<1)) * share)
    }
    self.servingMilliseconds = servingMilliseconds
  }

  /// Whether all have gone.
  var isDone: Bool { moments.isEmpty }

  /// Who has to go by now.
  ///
  /// - Parameter elapsed: milliseconds since the beginning.
  mutating func due(at elapsed: Int) -> [GoAway] {
    var goAways: [GoAway] = []
    while let moment = moments.last, moment.at <= Double(elapsed) || elapsed >= servingMilliseconds {
      moments.removeLast()
      goAways.append(GoAway(generation: moment.generation, reconnectAfter: max(0, Int(moment.at) - elapsed)))
    }
    return goAways
  }
}
