import Operations
import Synchronization

/// Says on standard error how many redriven requests are followed, and to a person who waits how it goes on.
final class FollowingLog: Sendable {
  private struct State {
    /// Requests that are followed; nil before that is known.
    var count: Int?
    var nextLine: ContinuousClock.Instant
  }

  private let redriven: Int
  private let state: Mutex<State>

  /// - Parameter redriven: how many requests there are.
  init(redriven: Int) {
    self.redriven = redriven
    state = Mutex(State(nextLine: .now + .seconds(1)))
  }

  /// How many requests are followed.
  var count: Int { state.withLock { $0.count ?? 0 } }

  /// Says what is new: at first how many are not followed, then now and then how many have no outcome yet.
  func report(_ progress: OutcomeWatch.Progress) {
    let now = ContinuousClock.now
    let (isFirst, isDue) = state.withLock { state in
      let isFirst = state.count == nil
      state.count = progress.followed
      let isDue = StandardError.isTerminal && now >= state.nextLine && progress.open > 0
      if isDue { state.nextLine = now + .seconds(5) }
      return (isFirst, isDue)
    }
    if isFirst, progress.followed < redriven {
      let reason = redriven > OutcomeWatch.maximum ? "\(OutcomeWatch.maximum) are at most" : "Kafka has not told where they are"
      StandardError.line(
        "\(redriven - progress.followed) of the \(redriven) redriven requests are not followed, for \(reason): 'carillon explain APNS-ID' says what became of them"
      )
    }
    if isDue {
      StandardError.line(
        "\(progress.open) of \(progress.followed) have no outcome yet: it waits for \((progress.remaining + 999) / 1_000) s more at most")
    }
  }
}
