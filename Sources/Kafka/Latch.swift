import Synchronization

/// A result that any thread sets once and any task can wait for.
final class Latch: Sendable {
  private struct State {
    var result: Bool?
    var waiters: [CheckedContinuation<Bool, Never>] = []
  }

  private let state = Mutex(State())

  /// Sets the result; only the first call counts.
  func open(_ result: Bool) {
    let waiters = state.withLock { state in
      guard state.result == nil else { return [CheckedContinuation<Bool, Never>]() }
      state.result = result
      defer { state.waiters = [] }
      return state.waiters
    }
    for waiter in waiters { waiter.resume(returning: result) }
  }

  /// Waits for the result of the first `open`.
  func wait() async -> Bool {
    await withCheckedContinuation { continuation in
      let result = state.withLock { state in
        if state.result == nil { state.waiters.append(continuation) }
        return state.result
      }
      if let result { continuation.resume(returning: result) }
    }
  }
}
