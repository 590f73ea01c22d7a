import Worker

/// The lanes of a process.
actor Lanes {
  private var hosts: [LaneHost] = []
  private var isStopping = false

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
  func stop(withinMilliseconds milliseconds: Int, _ logger: Logger) async {
    isStopping = true
    logger.info("draining", ["lanes": hosts.count, "withinMs": milliseconds])
    await withTaskGroup { group in
      for host in hosts { group.addTask { await host.stop(withinMilliseconds: milliseconds) } }
    }
    hosts = []
  }
}
