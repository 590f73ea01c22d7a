import Foundation
public import Testing

/// Runs each job on a thread of its own, for tests that block on sockets, or that calculate for long.
///
/// Swift's pool has as many threads as the machine has cores. Two tests that wait in `recv` for what a task of theirs should bring would
/// hold them both, and that task would find none. Two that calculate for seconds hold up all others of the process.
public final class BlockingThreads: TaskExecutor {
  /// The executor; it holds nothing.
  public static let shared = BlockingThreads()

  private init() {}

  /// Runs the job on a new thread.
  public func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    let executor = asUnownedTaskExecutor()
    Thread { job.runSynchronously(on: executor) }.start()
  }
}

/// Runs each test of a suite on threads of its own, see `BlockingThreads`.
public struct OwnThreadsTrait: TestTrait, SuiteTrait, TestScoping {
  /// A suite's trait holds for each of its tests.
  public var isRecursive: Bool { true }

  /// Runs the test where the pool's threads are not.
  @concurrent public func provideScope(
    for test: Test, testCase: Test.Case?, performing function: @concurrent @Sendable () async throws -> Void
  ) async throws {
    guard testCase != nil else { return try await function() }
    try await withTaskExecutorPreference(BlockingThreads.shared) { try await function() }
  }
}

extension Trait where Self == OwnThreadsTrait {
  /// Keeps the tests off the threads that all tests of the process share: they calculate for seconds without a suspension.
  public static var onThreadsOfTheirOwn: OwnThreadsTrait { OwnThreadsTrait() }
}
