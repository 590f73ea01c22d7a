import EventLoop
import Notifications
import Store
import Worker

/// Reports the process to Redis every few seconds. Its own loop and connection keep lanes from waiting.
///
/// It tries again after an error, which others report. Without reports, `carillon status` shows the process as silent.
actor WorkerReporter: LoopActor {
  nonisolated let loop: EventLoop
  private let store: StoreConfiguration
  /// Set while it reports.
  private var shards: Shards?
  private let health: Health
  private let metrics: MetricRegistry
  private let logger: Logger
  private let settings: @Sendable () -> [String: String]
  private let differing: Gauge
  /// The logged differences of settings, and the number of reports since the last comparison.
  private var told: (differences: [SettingDifference], reports: Int) = ([], 0)
  private var unreadyLog = UnreadyLog()
  /// The others' reports are read after this many of its own.
  private static let reportsToLook = 6
  /// The constant parts, and those that are set from outside.
  private var process: WorkerReport
  private var work: Task<Void, Never>?
  private var isClosed = false

  /// How long the end may take, and the wait before another attempt, in milliseconds.
  private static let (endMilliseconds, retryMilliseconds) = (1_000, 500)

  /// - Parameters:
  ///   - name: the process's name in events and logs, without a lane's number.
  ///   - roles: its stages.
  ///   - admin: the scheme and the address of its admin server.
  ///   - settings: the current settings that should be the same in all workers.
  init(
    of worker: RoleProcess, _ store: StoreConfiguration, _ name: Name, roles: [String], admin: (scheme: String, address: SocketAddress),
    _ settings: @escaping @Sendable () -> [String: String]
  ) {
    (loop, health, metrics) = (worker.control, worker.health, worker.metrics)
    (logger, self.settings) = (worker.logger, settings)
    differing = metrics.make(MetricNames.settingsDiffering)
    let now = WallClock.milliseconds()
    process = WorkerReport(name: name, roles: roles, version: Program.version, started: now, written: now)
    process.admin = "\(admin.scheme)://\(Machine.reachable(admin.address))"
    var store = store
    // Nothing waits for a report, and another one follows soon.
    store.callDeadlineMilliseconds = min(store.callDeadlineMilliseconds, Workers.intervalMilliseconds)
    self.store = store
  }

  /// Begins, once, after the Redis is known to be suitable.
  func start(lanes: Int) {
    guard !isClosed, work == nil else { return }
    process.lanes = lanes
    let shards = Shards(on: loop, store, clientName: "carillon-report")
    self.shards = shards
    shards.start()
    work = Task { await beat() }
  }

  /// Includes the devices' address from the next report on.
  func devices(at address: SocketAddress, isSecure: Bool) {
    process.devices = [DeviceURL.text(Machine.reachable(address), isSecure: isSecure)]
  }

  /// Reports a change at once, without waiting for the result.
  func hasChanged() {
    guard work != nil else { return }
    Task { await report() }
  }

  private func report() async {
    guard !isClosed, let shards, shards.isUp else { return }
    // The lanes report the errors of Redis, since they need it more.
    try? await Workers(shards).beat(standing)
    told.reports += 1
    if told.reports % Self.reportsToLook == 1 { await compare(shards) }
  }

  /// Logs how the settings of this worker differ from those of others.
  private func compare(_ shards: Shards) async {
    guard let workers = try? await Workers(shards).list(), !isClosed else { return }
    let differences = SettingDifference.among(workers).filter { $0.concerns(process.name) }
    differing.set(differences.count)
    // The first comparison of a new worker is often in the middle of a rolling change. It is logged once, and each change after it.
    guard differences != told.differences else { return }
    for difference in differences where !told.differences.contains(difference) {
      logger.warning("a setting differs between workers", ["setting": difference.key, "difference": difference.text])
    }
    if differences.isEmpty { logger.info("all workers have the same settings again") }
    told.differences = differences
  }

  private func beat() async {
    while !isClosed, let shards {
      logUnready()
      let wasUp = shards.isUp
      if wasUp { await report() }
      await loop.sleep(milliseconds: wasUp ? Workers.intervalMilliseconds : Self.retryMilliseconds)
    }
  }

  /// Logs the conditions that have lasted for long, whatever part of the process set them.
  private func logUnready() {
    let changes = unreadyLog.look(health.unready, at: WallClock.milliseconds())
    for condition in changes.lasting {
      logger.warning("not ready", ["condition": condition.name, "lane": condition.lane, "reason": condition.reason])
    }
    for condition in changes.ended { logger.info("ready again", ["condition": condition.name, "lane": condition.lane]) }
  }

  /// The present state of the process.
  private var standing: WorkerReport {
    var report = process
    report.written = WallClock.milliseconds()
    let unready = health.unready
    report.unreadyCount = unready.count
    // The end comes first, since the report may be too small for all.
    let sorted = unready.filter { $0.name == "draining" } + unready.filter { $0.name != "draining" }
    report.unready = sorted.map { .init(name: $0.name, lane: $0.lane.isEmpty ? nil : $0.lane, reason: $0.reason, since: $0.since) }
    report.connections = metrics.sum(of: MetricNames.connections).map { Int($0) }
    report.partitions = metrics.sum(of: MetricNames.assignedPartitions).map { Int($0) }
    report.laneLags = laneLags
    report.clockAhead = metrics.values(of: MetricNames.clockOffset).first.map { Int64($0.value * 1000) }
    report.settings = settings()
    return report
  }

  /// The lags of the lanes in `deliveries`; the largest first.
  private var laneLags: [WorkerReport.Lag] {
    let seconds = Dictionary(metrics.values(of: MetricNames.fanOutLagSeconds).map { ($0.labels, $0.value) }) { $1 }
    let lags = metrics.values(of: MetricNames.fanOutLagRecords).compactMap { labels, records in
      Int32(labels[1]).map { partition in
        WorkerReport.Lag(
          lane: labels[0].replacing("_", with: "-"), partition: partition, records: Int64(records),
          milliseconds: seconds[labels].map { Int64($0 * 1000) })
      }
    }
    return lags.sorted { ($0.milliseconds ?? .max, $0.records) > ($1.milliseconds ?? .max, $1.records) }
  }

  private func leave() async {
    if let shards { try? await Workers(shards).leave(process.name, started: process.started) }
  }

  /// Deletes the report, if Redis answers soon, and ends.
  func close() async {
    guard !isClosed else { return }
    isClosed = true
    work?.cancel()
    if shards?.isUp == true {
      let leaving = Task { await leave() }
      await leaving.value(by: .now + .milliseconds(Self.endMilliseconds))
    }
    shards?.close()
    shards = nil
    await work?.value
  }
}

extension Machine {
  /// An address that other machines can reach. The host's name replaces an address that stands for all of the machine.
  static func reachable(_ address: SocketAddress) -> SocketAddress {
    address.isAnyAddress ? SocketAddress(host: hostName, port: address.port) : address
  }
}
