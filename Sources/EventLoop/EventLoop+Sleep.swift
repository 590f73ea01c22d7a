/// The early end of what a task waits for. Cancellation may come from any thread, and goes to the loop first.
///
/// - Note: `@unchecked Sendable` because only the loop touches its contents.
private final class Cancellation: @unchecked Sendable {
  private let loop: EventLoop
  private var isCancelled = false
  private var end: (() -> Void)?

  init(on loop: EventLoop) { self.loop = loop }

  func set(_ end: @escaping () -> Void) {
    self.end = end
    if isCancelled { end() }
  }

  func cancel() {
    loop.execute {
      // For a task that was cancelled before, this may come before `set`.
      self.isCancelled = true
      self.end?()
    }
  }
}

extension EventLoop {
  /// Waits for a result on the loop. Call it from a task of one of its actors.
  ///
  /// - Parameters:
  ///   - isolation: the caller's actor, if there is one. Otherwise cancellation's closure would leave its executor.
  ///   - begin: keeps the continuation, and returns what resumes it early. That is called on the loop if the task is cancelled, perhaps after
  ///     the result.
  public func wait<Value: Sendable>(
    isolation: isolated (any Actor)? = #isolation, _ begin: (CheckedContinuation<Value, Never>) -> () -> Void
  ) async -> Value {
    preconditionOnLoop()
    let cancellation = Cancellation(on: self)
    return await withTaskCancellationHandler {
      _ = isolation
      return await withCheckedContinuation { cancellation.set(begin($0)) }
    } onCancel: {
      cancellation.cancel()
    }
  }

  /// Sleeps on the loop, or until the task is cancelled. Call it from a task of one of its actors.
  public func sleep(milliseconds: Int, isolation: isolated (any Actor)? = #isolation) async {
    await wait { (continuation: CheckedContinuation<Void, Never>) in
      var waiting: CheckedContinuation<Void, Never>? = continuation
      let timer = Timer(on: self)
      let end = {
        timer.close()
        waiting?.resume()
        waiting = nil
      }
      timer.handler = end
      timer.start(after: milliseconds)
      return end
    }
  }
}
