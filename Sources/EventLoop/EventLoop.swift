import CUV
import Glibc
import Synchronization

/// A thread with a libuv loop, which is the executor of the actors on it.
///
/// A lane's actors use it as their executor, and its tasks prefer it (`Task(executorPreference: loop)`), so neither ever runs on another
/// thread. Objects that C callbacks touch are plain classes, confined to the loop: made, used and closed on it.
public final class EventLoop: SerialExecutor, TaskExecutor {
  enum Job {
    case task(UnownedJob)
    case body(@Sendable () -> Void)
  }

  private struct Inbox {
    var jobs: [Job] = []
    /// A wake-up is pending, so another one is not needed.
    var woken = false
    var isClosed = false
  }

  /// The thread's name. The system shows its first 15 bytes.
  public let name: String
  private let inbox = Mutex(Inbox())
  private let thread = Atomic<UInt>(0)
  private let offLoop = Atomic<Int>(0)
  private let ticks = Atomic<UInt64>(0)
  // Addresses as numbers make the class Sendable. Only the loop's thread dereferences them. The exception is `uv_async_send`, which libuv
  // allows from any thread, under the inbox' lock while the loop is open.
  private let loopAddress: UInt
  private let asyncAddress: UInt

  /// Makes the loop and starts its thread.
  ///
  /// - Parameter name: the thread's name in `ps` and debuggers.
  public init(name: String) {
    self.name = name
    Self.ignoreBrokenPipes
    let loop = UnsafeMutablePointer<uv_loop_t>.allocate(capacity: 1)
    let async = UnsafeMutablePointer<uv_async_t>.allocate(capacity: 1)
    precondition(uv_loop_init(loop) == 0, "no descriptors or memory left for an event loop")
    let result = uv_async_init(loop, async) { handle in
      guard let handle else { return }
      LoopCore.of(handle.pointee.loop).drain()
    }
    precondition(result == 0, "no descriptors left for an event loop's wake-up")
    async.pointee.data = nil
    loopAddress = UInt(bitPattern: loop)
    asyncAddress = UInt(bitPattern: async)
    NamedThread.start(name) { [self] in main() }
  }

  private static let ignoreBrokenPipes: Void = { _ = signal(SIGPIPE, SIG_IGN) }()

  private func main() {
    thread.store(UInt(pthread_self()), ordering: .releasing)
    let core = LoopCore(self, uv)
    withExtendedLifetime(core) {
      uv_run(uv, UV_RUN_DEFAULT)
      let waiting = core.whenClosed
      thread.store(0, ordering: .releasing)
      uv_loop_close(uv)
      uv.deallocate()
      for continuation in waiting { continuation.resume() }
    }
  }

  var uv: UnsafeMutablePointer<uv_loop_t> {
    guard let loop = UnsafeMutablePointer<uv_loop_t>(bitPattern: loopAddress) else { preconditionFailure("a loop has an address") }
    return loop
  }

  private var async: UnsafeMutablePointer<uv_async_t> {
    guard let async = UnsafeMutablePointer<uv_async_t>(bitPattern: asyncAddress) else { preconditionFailure("a wake-up has an address") }
    return async
  }

  // MARK: The executor

  /// Whether the calling thread is the loop's.
  public var isOnLoop: Bool { thread.load(ordering: .relaxed) == UInt(pthread_self()) }

  /// Traps if the calling thread is not the loop's. Objects of the loop check their callers with it.
  @inline(__always)
  public func preconditionOnLoop() { precondition(isOnLoop, "called from another thread than that of the event loop") }

  /// The number of jobs from other threads. A working lane adds none.
  public var offLoopEnqueues: Int { offLoop.load(ordering: .relaxed) }

  /// Takes a job for the loop's thread. After `close` jobs are dropped.
  public func enqueue(_ job: consuming ExecutorJob) { put(.task(UnownedJob(job))) }

  /// Runs `body` on the loop soon, from any thread and in order. After `close` it is dropped.
  public func execute(_ body: @escaping @Sendable () -> Void) { put(.body(body)) }

  /// Runs `body` on the loop and returns its result.
  public func run<T: Sendable>(_ body: @escaping @Sendable () throws -> T) async throws -> T {
    try await withCheckedThrowingContinuation { continuation in
      execute { continuation.resume(with: Result(catching: body)) }
    }
  }

  private func put(_ job: Job) {
    // The loop finds a job from itself before it can block.
    if isOnLoop {
      inbox.withLock { $0.jobs.append(job) }
      return
    }
    offLoop.add(1, ordering: .relaxed)
    inbox.withLock { inbox in
      guard !inbox.isClosed else { return }
      inbox.jobs.append(job)
      if !inbox.woken {
        inbox.woken = true
        uv_async_send(async)
      }
    }
  }

  /// Swaps the waiting jobs for an empty array; false if there are none.
  func take(_ jobs: inout [Job]) -> Bool {
    inbox.withLock { inbox in
      inbox.woken = false
      if inbox.jobs.isEmpty { return false }
      swap(&inbox.jobs, &jobs)
      return true
    }
  }

  /// Whether jobs wait. The end of a turn may have added some.
  var hasJobs: Bool { inbox.withLock { !$0.jobs.isEmpty } }

  /// Two loops are never the same context.
  public func isSameExclusiveExecutionContext(other: EventLoop) -> Bool { self === other }

  /// Whether the caller runs on this loop.
  public func isIsolatingCurrentContext() -> Bool? { isOnLoop }

  /// Traps if the caller does not run on this loop.
  public func checkIsolated() { preconditionOnLoop() }

  // MARK: On the loop

  /// Milliseconds of a monotonic clock, read once per turn; on the loop only.
  public func milliseconds() -> UInt64 {
    preconditionOnLoop()
    return uv_now(uv)
  }

  /// Milliseconds since 1970 (``WallClock``), read once per turn for thousands of uses; on the loop only.
  public func wallMilliseconds() -> Int64 { core.wallMilliseconds() }

  /// Runs `body` at the end of every turn, before the loop can block and before streams write; on the loop only.
  @discardableResult public func onTurnEnd(_ body: @escaping () -> Void) -> TurnEnd {
    let turnEnd = TurnEnd(body)
    core.turnEnds.append(turnEnd)
    return turnEnd
  }

  /// The number of turns so far, from any thread. It stops while the loop stands still.
  public var turns: UInt64 { ticks.load(ordering: .relaxed) }

  func countTurn() { ticks.add(1, ordering: .relaxed) }

  /// The half that only its thread uses.
  var core: LoopCore {
    preconditionOnLoop()
    return LoopCore.of(uv)
  }

  /// Ends the loop and its thread, and waits for both. Open handles are closed first.
  ///
  /// Call it outside of the loop after its actors have finished. Later jobs are dropped.
  public func close() async {
    await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
      let open = inbox.withLock { inbox in
        if inbox.isClosed { return false }
        inbox.jobs.append(
          .body { [self] in
            core.whenClosed.append(continuation)
            core.closeAll()
          })
        inbox.isClosed = true
        inbox.woken = true
        uv_async_send(async)
        return true
      }
      if !open { continuation.resume() }
    }
  }
}
