import Synchronization

/// An end that is reached once, from any thread, and that anybody may wait for.
final class Latch: Sendable {
  private struct State {
    var result: Bool?
    var waiters: [CheckedContinuation<Bool, Never>] = []
  }

  private let state = Mutex(State())

  /// Reaches the end; only the first call counts.
  func open(_ result: Bool) {
    let waiters = state.withLock { state in
      guard state.result == nil else { return [CheckedContinuation<Bool, Never>]() }
      state.result = result
      defer { state.waiters = [] }
      return state.waiters
    }
    for waiter in waiters { waiter.resume(returning: result) }
  }

  /// Waits for the end and says what the first call of `open` said.
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
