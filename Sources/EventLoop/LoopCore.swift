import CUV

/// The parts of a loop that only its thread uses. They are running jobs, ends of turns, and shared buffers.
final class LoopCore {
  let loop: EventLoop
  private let uv: UnsafeMutablePointer<uv_loop_t>
  private var jobs: [EventLoop.Job] = []
  private let idle: UnsafeMutablePointer<uv_idle_t>
  private let prepare: UnsafeMutablePointer<uv_prepare_t>
  private let check: UnsafeMutablePointer<uv_check_t>
  private var isIdle = false
  private var isDraining = false
  /// The time of day, and when it was read in the loop's milliseconds.
  private var wall: (read: UInt64, milliseconds: Int64) = (.max, 0)
  var turnEnds: [TurnEnd] = []
  var whenClosed: [CheckedContinuation<Void, Never>] = []
  /// Streams with something to write in this turn.
  var unwritten: [Stream] = []
  private var writing: [Stream] = []

  /// One buffer for all reads. Received bytes are valid only during the handler's call.
  let readBuffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 65536, alignment: 16)
  /// One vector for every write.
  let vector = UnsafeMutableBufferPointer<uv_buf_t>.allocate(capacity: 256)

  init(_ loop: EventLoop, _ uv: UnsafeMutablePointer<uv_loop_t>) {
    self.loop = loop
    self.uv = uv
    idle = .allocate(capacity: 1)
    prepare = .allocate(capacity: 1)
    check = .allocate(capacity: 1)
    uv.pointee.data = Unmanaged.passUnretained(self).toOpaque()
    uv_idle_init(uv, idle)
    uv_prepare_init(uv, prepare)
    uv_check_init(uv, check)
    (idle.pointee.data, prepare.pointee.data, check.pointee.data) = (nil, nil, nil)
    uv_prepare_start(prepare) { handle in
      guard let handle else { return }
      LoopCore.of(handle.pointee.loop).beforeBlocking()
    }
    uv_check_start(check) { handle in
      guard let handle else { return }
      LoopCore.of(handle.pointee.loop).endTurn()
    }
  }

  deinit {
    readBuffer.deallocate()
    vector.deallocate()
  }

  static func of(_ loop: UnsafeMutablePointer<uv_loop_t>?) -> LoopCore {
    guard let data = loop?.pointee.data else { preconditionFailure("a running loop has its core") }
    return Unmanaged<LoopCore>.fromOpaque(data).takeUnretainedValue()
  }

  func wallMilliseconds() -> Int64 {
    let now = uv_now(uv)
    if wall.read != now { wall = (now, WallClock.milliseconds()) }
    return wall.milliseconds
  }

  /// Runs the waiting jobs once.
  func drain() {
    // A job may run the loop's callbacks, but must not enter this function again.
    guard !isDraining, loop.take(&jobs) else { return }
    isDraining = true
    let serial = loop.asUnownedSerialExecutor()
    let task = loop.asUnownedTaskExecutor()
    for job in jobs {
      switch job {
      case .task(let job): job.runSynchronously(isolatedTo: serial, taskExecutor: task)
      case .body(let body): body()
      }
    }
    jobs.removeAll(keepingCapacity: true)
    isDraining = false
  }

  /// Jobs may queue writes, and ends of turns may queue jobs. Both repeat until no work is left, or the loop is kept from blocking.
  private func beforeBlocking() {
    loop.countTurn()
    var rounds = 0
    var isWaiting = true
    while isWaiting && rounds < 16 {
      drain()
      endTurn()
      isWaiting = loop.hasJobs
      rounds += 1
    }
    if isWaiting != isIdle {
      isIdle = isWaiting
      if isWaiting { uv_idle_start(idle) { _ in } } else { uv_idle_stop(idle) }
    }
  }

  private func endTurn() {
    var hasClosed = false
    for turnEnd in turnEnds { if let body = turnEnd.body { body() } else { hasClosed = true } }
    if hasClosed { turnEnds.removeAll { $0.body == nil } }
    while !unwritten.isEmpty {
      swap(&unwritten, &writing)
      for stream in writing { stream.flush() }
      writing.removeAll(keepingCapacity: true)
    }
  }

  /// Closes every handle, so that `uv_run` returns.
  func closeAll() {
    turnEnds = []
    uv_walk(
      uv,
      { handle, _ in
        guard let handle else { return }
        closeOwnedHandle(handle)
      }, nil)
  }
}
