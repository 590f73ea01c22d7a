import Notifications

/// The requests of one target and application at the schedules' stage, in order. A value.
///
/// A cancel of all begins when the earlier requests have ended, and the later ones begin when it has ended.
struct ScheduleScope<Request> {
  /// The requests that have not begun.
  private var queue: ArraySlice<(request: Request, cancelsAll: Bool)> = []
  /// How many requests have begun and not ended.
  private var running = 0
  /// Whether the running request cancels all.
  private var isCanceling = false

  /// Whether no request is left.
  var isEmpty: Bool { running == 0 && queue.isEmpty }

  /// Adds a request. Returns the requests that begin now: this one, or none.
  mutating func add(_ request: Request, cancelsAll: Bool) -> [Request] {
    queue.append((request, cancelsAll))
    return advance()
  }

  /// Notes that a request has ended. Returns the requests that begin now.
  mutating func ended(cancelsAll: Bool) -> [Request] {
    running -= 1
    if cancelsAll { isCanceling = false }
    return advance()
  }

  /// Drops requests that have not begun. Returns the requests that begin now.
  mutating func drop(where isDropped: (Request) -> Bool) -> [Request] {
    queue.removeAll { isDropped($0.request) }
    return advance()
  }

  private mutating func advance() -> [Request] {
    var begun: [Request] = []
    while !isCanceling, let next = queue.first, !next.cancelsAll || running == 0 {
      queue.removeFirst()
      running += 1
      isCanceling = next.cancelsAll
      begun.append(next.request)
    }
    return begun
  }
}
