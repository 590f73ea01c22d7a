/// The early end of a sleep. Cancellation may come from any thread, and goes to the loop first.
///
/// - Note: `@unchecked Sendable` because only the loop touches its contents.
private final class Sleep: @unchecked Sendable {
  private let loop: EventLoop
  private let timer: Timer
  private var continuation: CheckedContinuation<Void, Never>?
  private var isOver = false

  init(on loop: EventLoop) { (self.loop, timer) = (loop, Timer(on: loop)) }

  func start(_ milliseconds: Int, _ continuation: CheckedContinuation<Void, Never>) {
    guard !isOver else { return continuation.resume() }
    self.continuation = continuation
    timer.handler = { [self] in end() }
    timer.start(after: milliseconds)
  }

  func end() {
    isOver = true
    timer.close()
    continuation?.resume()
    continuation = nil
  }

  func cancel() { loop.execute { self.end() } }
}

extension EventLoop {
  /// Sleeps on the loop, or until the task is cancelled. Call it from a task of one of its actors.
  public func sleep(milliseconds: Int, isolation: isolated (any Actor)? = #isolation) async {
    preconditionOnLoop()
    let sleep = Sleep(on: self)
    await withTaskCancellationHandler {
      _ = isolation
      await withCheckedContinuation { sleep.start(milliseconds, $0) }
    } onCancel: {
      sleep.cancel()
    }
  }
}
