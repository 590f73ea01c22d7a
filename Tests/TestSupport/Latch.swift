import Dispatch
import Synchronization

/// A latch that a test opens once. Tasks and threads that reach it before that wait at it.
public final class Latch: Sendable {
  private struct State {
    var isOpen = false
    var next = 0
    var waiting: [Int: CheckedContinuation<Void, Never>] = [:]
  }

  private let state = Mutex(State())
  private let opening = DispatchSemaphore(value: 0)

  /// Makes a latch that is closed.
  public init() {}

  /// Whether it is open.
  public var isOpen: Bool { state.withLock { $0.isOpen } }

  /// Opens it.
  public func open() {
    let waiting = state.withLock { state in
      defer { state.waiting = [:] }
      state.isOpen = true
      return state.waiting.values
    }
    opening.signal()
    for continuation in waiting { continuation.resume() }
  }

  /// Waits until it is open, also when the task is cancelled meanwhile.
  public func wait() async {
    await withCheckedContinuation { continuation in
      let isOpen = state.withLock { state in
        if !state.isOpen { add(continuation, to: &state) }
        return state.isOpen
      }
      if isOpen { continuation.resume() }
    }
  }

  /// Waits until it is open or the task is cancelled; returns whether it is open.
  @discardableResult
  public func waitUnlessCancelled() async -> Bool {
    let number = state.withLock { state in
      state.next += 1
      return state.next
    }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        // A cancellation is seen here or by the handler, which takes the lock after it.
        let isOver = state.withLock { state in
          let isOver = state.isOpen || Task.isCancelled
          if !isOver { state.waiting[number] = continuation }
          return isOver
        }
        if isOver { continuation.resume() }
      }
    } onCancel: {
      state.withLock { $0.waiting.removeValue(forKey: number) }?.resume()
    }
    return isOpen
  }

  /// Holds the thread until it is open, or a test has failed to open it.
  public func block() {
    _ = opening.wait(timeout: .now() + .milliseconds(hangMilliseconds))
    opening.signal()
  }

  private func add(_ continuation: CheckedContinuation<Void, Never>, to state: inout State) {
    state.next += 1
    state.waiting[state.next] = continuation
  }
}
