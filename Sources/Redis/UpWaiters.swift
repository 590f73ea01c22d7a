import EventLoop

/// The tasks that wait for a connection, each with a deadline.
final class UpWaiters {
  private final class Waiter {
    var continuation: CheckedContinuation<Result<Void, RedisError>, Never>?
    var timer: Timer?

    func finish(_ result: Result<Void, RedisError>) {
      timer?.close()
      timer = nil
      continuation?.resume(returning: result)
      continuation = nil
    }
  }

  private var waiters: [Waiter] = []

  /// - Parameter cause: answers the error after the deadline.
  func add(
    on loop: EventLoop, _ milliseconds: Int, _ continuation: CheckedContinuation<Result<Void, RedisError>, Never>,
    cause: @escaping () -> RedisError
  ) {
    let waiter = Waiter()
    waiter.continuation = continuation
    waiter.timer = Timer(on: loop, after: milliseconds) { [weak self] in
      self?.waiters.removeAll { $0 === waiter }
      waiter.finish(.failure(cause()))
    }
    waiters.append(waiter)
  }

  func finish(_ result: Result<Void, RedisError>) {
    let all = waiters
    waiters = []
    for waiter in all { waiter.finish(result) }
  }
}
