import Operations
import Synchronization

/// Reports on standard error how many redriven requests are followed, and on a terminal the progress.
final class FollowingLog: Sendable {
  private struct State {
    /// The number of followed requests; nil before it is known.
    var count: Int?
    var nextLine: ContinuousClock.Instant
  }

  private let redriven: Int
  private let state: Mutex<State>

  /// - Parameter redriven: the number of requests.
  init(redriven: Int) {
    self.redriven = redriven
    state = Mutex(State(nextLine: .now + .seconds(1)))
  }

  /// The number of followed requests.
  var count: Int { state.withLock { $0.count ?? 0 } }

  /// Reports how many requests are not followed, then from time to time how many have no outcome yet.
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
      let reason = redriven > OutcomeWatch.maximum ? "the maximum is \(OutcomeWatch.maximum)" : "Kafka has not told where they are"
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
