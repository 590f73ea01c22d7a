import Worker

/// The lanes of a process.
actor ProcessLanes {
  private var hosts: [LaneHost] = []
  private var isStopping = false

  /// How many there are.
  var count: Int { hosts.count }

  /// Takes a further lane in, which was not started yet; false, and the lane ended, when the process is ending already.
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
  /// - Parameter others: ends what runs beside them; it is waited for a second longer, for it may hang with a file system.
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
