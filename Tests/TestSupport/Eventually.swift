import Synchronization
public import Testing

/// How long a test waits before its condition counts as one that never holds.
///
/// It only ends a hang and says nothing about how fast anything is: a machine may stand still for a minute.
public let hangDeadline = Duration.seconds(300)

/// The tests that hung once: each has failed, so its later waits end at once.
private let hung = Mutex<Set<Test.ID>>([])

/// Waits until a condition holds, on the caller's executor; records an issue after `hangDeadline`.
///
/// All tests wait here: this is their only file that sleeps and reads elapsed time.
///
/// - Parameters:
///   - what: the condition in words, for the issue. It is asked when the wait has ended in vain.
///   - condition: asked every few milliseconds. An error that it throws counts as "not yet", and the issue names the last one.
/// - Returns: whether the condition holds.
@discardableResult
public func eventually(
  _ what: @autoclosure () -> String, _ location: SourceLocation = #_sourceLocation, _ condition: () async throws -> Bool
) async -> Bool {
  let deadline = ContinuousClock.now + hangDeadline
  let test = Test.current?.id
  while true {
    var failure: (any Error)?
    do { if try await condition() { return true } } catch { failure = error }
    let isOver = ContinuousClock.now >= deadline || Task.isCancelled || hung.withLock { hung in test.map(hung.contains) ?? false }
    if isOver {
      if let test { hung.withLock { _ = $0.insert(test) } }
      Issue.record("never came true: \(what())\(failure.map { "; the last error: \($0)" } ?? "")", sourceLocation: location)
      return false
    }
    await pause()
  }
}

/// Lets others run for some milliseconds, in a loop that counts its own rounds. Nothing may depend on how long it takes.
public func pause() async {
  // Swift 6.3 does not come back to the caller's executor from `sleep(for:)` in a function that runs on it.
  try? await Task.sleep(nanoseconds: 5_000_000)
}
