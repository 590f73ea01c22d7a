import Foundation

/// Runs each job on a thread of its own, for tests that block on sockets.
///
/// Swift's pool has as many threads as the machine has cores. Two tests that wait in `recv` for what a task of theirs should bring would
/// hold them both, and that task would find none.
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
