import Synchronization
public import Testing

/// How long a test waits before its condition counts as one that never holds.
///
/// It only ends a hang and says nothing about how fast anything is: a machine may stand still for a minute.
public let hangDeadline = Duration.seconds(300)
/// The same in milliseconds, for what takes a deadline as a number.
public let hangMilliseconds = 300_000

/// The tests that hung once: each has failed, so its later waits end at once.
private let hung = Mutex<Set<Test.ID>>([])

/// Lets a test wait again, when it runs once more.
func forgetHang(of test: Test) { hung.withLock { _ = $0.remove(test.id) } }

/// A condition that a helper needs did not come true.
public struct NeverTrue: Error, CustomStringConvertible {
  /// What never came true.
  public let description: String
}

/// Waits until a condition holds, on the caller's executor; records an issue after `hangDeadline`.
///
/// All tests wait here: this is their only file that sleeps and reads elapsed time.
///
/// - Parameters:
///   - what: the condition in words, for the issue. It is computed only then.
///   - condition: asked every few milliseconds. An error that it throws counts as "not yet", and the issue names the last one.
/// - Returns: whether the condition holds.
@discardableResult
public func eventually(
  _ what: @autoclosure () -> String, _ location: SourceLocation = #_sourceLocation, _ condition: () async throws -> Bool
) async -> Bool {
  var wait = Wait()
  while true {
    var failure: (any Error)?
    do { if try await condition() { return true } } catch { failure = error }
    guard await wait.goesOn() else {
      Issue.record("never came true: \(what())\(failure.map { "; the last error: \($0)" } ?? "")", sourceLocation: location)
      return false
    }
  }
}

/// Waits as `eventually` does, for a helper that cannot go on without it.
///
/// - Parameter hangs: the number of deadlines to wait, for a process that does so many things which may hang.
/// - Throws: `NeverTrue` after `hangDeadline`, and at once what the condition throws.
public func requireEventually(
  _ what: @autoclosure () -> String, hangs: Int = 1, _ condition: () async throws -> Bool
) async throws {
  var wait = Wait(hangs: hangs)
  while try await !condition() {
    guard await wait.goesOn() else { throw NeverTrue(description: "never came true: \(what())") }
  }
}

/// Runs `body`, and expects that it ends by itself.
///
/// For what may not wait in vain: a deadline of its own is longer than `hangDeadline`, which then ends the test.
public func endsByItself<R: Sendable>(_ what: String, _ body: @escaping @Sendable () async throws -> R) async throws -> R {
  let result = Mutex<Result<R, any Error>?>(nil)
  let work = Task {
    let end: Result<R, any Error>
    do { end = .success(try await body()) } catch { end = .failure(error) }
    result.withLock { $0 = end }
  }
  do { try await requireEventually("\(what) ends") { result.withLock { $0 != nil } } } catch {
    work.cancel()
    throw error
  }
  guard let end = result.withLock({ $0 }) else { preconditionFailure("it has ended") }
  return try end.get()
}

/// Lets others run for some milliseconds, in a loop that counts its own rounds. Nothing may depend on how long it takes.
public func pause() async { await sleep(milliseconds: 5) }

/// Waits until so much time has passed at least: for a test that is about time.
public func timePasses(_ time: Duration) async { await sleep(milliseconds: UInt64(time / .milliseconds(1))) }

/// A moment, for what a test may expect only soon after it.
public struct Moment: Sendable {
  private let time = ContinuousClock.now

  /// Now.
  public init() {}

  /// Whether it was less than so long ago.
  public func isWithin(_ time: Duration) -> Bool { ContinuousClock.now - self.time < time }
}

/// Works until its task is cancelled.
public func untilCancelled() async throws -> Never {
  while true { try await Task.sleep(for: hangDeadline) }
}

/// One wait, with its deadline.
private struct Wait {
  private let deadline: ContinuousClock.Instant
  private let test = Test.current?.id
  private var rounds = 0

  init(hangs: Int = 1) { deadline = ContinuousClock.now + hangDeadline * hangs }

  /// Lets others run before the condition is asked again. Returns false when the wait is over.
  mutating func goesOn() async -> Bool {
    guard ContinuousClock.now < deadline else {
      if let test { hung.withLock { _ = $0.insert(test) } }
      return false
    }
    guard !Task.isCancelled, !hung.withLock({ hung in test.map(hung.contains) ?? false }) else { return false }
    rounds += 1
    // What takes seconds is asked seldom: many tests wait beside each other, and each question costs them all.
    await sleep(milliseconds: rounds <= 100 ? 5 : 20)
    return true
  }
}

// Swift 6.3 does not come back to the caller's executor from `sleep(for:)` in a function that runs on it.
private func sleep(milliseconds: UInt64) async { try? await Task.sleep(nanoseconds: milliseconds * 1_000_000) }
