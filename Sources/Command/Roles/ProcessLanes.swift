import Worker

/// The lanes of a process.
actor ProcessLanes {
  private var hosts: [LaneHost] = []
  private var isStopping = false

  /// The number of lanes.
  var count: Int { hosts.count }

  /// Adds a lane that was not started yet. During the process's end it ends the lane and returns false.
  func add(_ host: LaneHost) async -> Bool {
    if isStopping {
      await host.stop(withinMilliseconds: 0)
      return false
    }
    hosts.append(host)
    return true
  }

  /// Drains all of them at once.
  ///
  /// - Parameter others: ends the parts beside the lanes. They get one second more, since a file system may hang.
  func stop(withinMilliseconds milliseconds: Int, _ logger: Logger, beside others: @escaping @Sendable () async -> Void) async {
    isStopping = true
    let end = ContinuousClock.now + .milliseconds(milliseconds) + .seconds(1)
    let beside = Task { await others() }
    logger.info("draining", ["lanes": hosts.count, "withinMs": milliseconds])
    await withTaskGroup { group in
      for host in hosts { group.addTask { await host.stop(withinMilliseconds: milliseconds) } }
    }
    hosts = []
    await beside.value(by: end)
  }
}
