import EventLoop
import Kafka
import Worker

/// The reaction of a process to a lane whose Kafka client has failed for good.
struct LaneFailures: Sendable {
  /// The longest time to send its devices away. It can do nothing more for them.
  static let longestDrain = 10_000

  /// How long the lane may take to end before it starts again.
  let drainMilliseconds: Int
  /// Counts the restarts.
  let restarts: Counter
  /// Called after too many failures: the process must end.
  let giveUp: @Sendable (any Error) -> Void
}

/// One lane with its loop. It is started until it runs, and drained at the end.
///
/// The dependencies of a lane may start later than the lane. That is logged and reported by the readiness, and does not end the process. A
/// lane whose Kafka client has failed for good is ended, and another one with the same name starts, unless that happens too often.
actor LaneHost {
  private enum Phase {
    /// No lane was started yet.
    case idle
    /// A lane is being started. In a restart, the former lane ends first.
    case starting
    /// A lane runs.
    case running
    /// No lane is started any more.
    case ending
  }

  private let loop: EventLoop
  private let logger: Logger
  private let health: Health
  private let failures: LaneFailures
  private let make: @Sendable (LanePlace) -> any WorkerLane
  private var phase = Phase.idle
  private var lane: (any WorkerLane)?
  /// Counts the lanes, so that failures of a former lane are ignored.
  private var number = 0
  /// Whether a task is starting a lane, or is about to stop doing that.
  private var isStarting = false
  private var limit = RestartLimit()
  /// Why no lane runs.
  private var reason = "starting"
  /// The devices' address.
  private var address: SocketAddress?

  private static let firstRetry = 500
  private static let longestRetry = 10_000

  /// - Parameter make: makes an idle lane; called for every attempt to start.
  init(
    _ name: String, logger: Logger, health: Health, failures: LaneFailures, make: @escaping @Sendable (LanePlace) -> any WorkerLane
  ) {
    self.logger = logger.with(["lane": name])
    self.health = health.forLane(name)
    self.failures = failures
    self.make = make
    loop = EventLoop(name: name)
  }

  /// Starts the lane.
  ///
  /// - Returns: the devices' address, if there is one; nil also if it was stopped before the start.
  /// - Throws: only errors that another attempt cannot fix.
  func start() async throws -> SocketAddress? {
    guard phase == .idle else { return nil }
    health.watch(loop)
    phase = .starting
    try await startLane()
    return address
  }

  /// Starts lanes until one runs.
  private func startLane() async throws {
    isStarting = true
    defer { isStarting = false }
    var wait = Self.firstRetry
    while phase == .starting {
      health.set("started", ready: false, reason)
      number += 1
      let number = number
      let lane = make(
        LanePlace(on: loop, logger: logger, health: health, address: address) { [weak self] error in
          Task { await self?.failed(error, number) }
        })
      self.lane = lane
      do {
        let address = try await Task(executorPreference: loop) { try await lane.start() }.value
        if phase == .starting, number == self.number {
          phase = .running
          self.address = address
          return health.set("started", ready: true)
        }
        await drain(withinMilliseconds: 1000)
      } catch {
        if phase == .ending { return }
        await drain(withinMilliseconds: 1000)
        self.lane = nil
        if isFinal(error) {
          phase = .ending
          throw error
        }
        health.set("started", ready: false, "\(error)")
        logger.error("the lane could not start; another attempt follows", ["error": "\(error)", "retryMs": wait])
        try? await Task.sleep(for: .milliseconds(wait))
        wait = min(wait * 2, Self.longestRetry)
      }
    }
  }

  /// Handles the permanent failure of a Kafka client in the lane of this number.
  private func failed(_ error: KafkaError, _ number: Int) async {
    // A lane has several clients, and each of them may report it.
    guard number == self.number, phase == .starting || phase == .running else { return }
    self.number += 1
    // Others have removed it while its process stood still, or a worker of the same name has begun: that is no failure of the lane's own.
    if error.code == .fencedInstance {
      logger.warning("another worker has the lane's place in the group; the lane starts again", ["error": "\(error)"])
    } else if let time = limit.failed(at: SteadyClock.milliseconds()) {
      logger.warning(
        "a client of Kafka has failed for good; the lane starts again",
        ["error": "\(error)", "restart": time, "maximum": limit.maximum, "withinSeconds": Int(limit.spanMilliseconds / 1000)])
    } else {
      phase = .ending
      health.set("started", ready: false, "\(error)")
      logger.error("a client of Kafka has failed for good too often for the lane to start again; the process ends", ["error": "\(error)"])
      return failures.giveUp(error)
    }
    reason = "the lane starts again: \(error)"
    health.set("started", ready: false, reason)
    failures.restarts.increment()
    // If the lane was being started, the task that starts it tries again.
    guard phase == .running else { return }
    await restart()
  }

  private func restart() async {
    phase = .starting
    isStarting = true
    let failed = lane
    lane = nil
    await drain(failed, withinMilliseconds: failures.drainMilliseconds)
    // The former lane's conditions do not apply to the next.
    if phase == .starting { health.removeLane(keeping: "started") }
    do { try await startLane() } catch { failures.giveUp(error) }
  }

  /// Ends the running work and the loop.
  func stop(withinMilliseconds milliseconds: Int) async {
    phase = .ending
    health.set("draining", ready: false, "the process is ending")
    await drain(withinMilliseconds: milliseconds)
    // A running start fails when its lane is drained, but that lane may hardly exist yet. Without its loop it would never end.
    while isStarting {
      await drain(withinMilliseconds: 0)
      try? await Task.sleep(for: .milliseconds(20))
    }
    lane = nil
    health.unwatch(loop)
    await loop.close()
  }

  private func drain(withinMilliseconds milliseconds: Int) async { await drain(lane, withinMilliseconds: milliseconds) }

  private func drain(_ lane: (any WorkerLane)?, withinMilliseconds milliseconds: Int) async {
    guard let lane else { return }
    await Task(executorPreference: loop) { await lane.drain(withinMilliseconds: milliseconds) }.value
  }

  private func isFinal(_ error: any Error) -> Bool {
    // An address that was in use a moment ago becomes free again.
    if let error = error as? EventLoopError, error.code == .closed || error.code == .addressInUse && address != nil { return false }
    return Program.exitCode(of: error) == .wrongUsage
  }
}
