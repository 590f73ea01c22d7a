import EventLoop
import FanOut
import Notifications
import Redis
import Store
import Transform
import Worker

/// Reports the process to Redis every few seconds, for `carillon status`: on a loop and a connection of its own, so that no lane waits for it.
///
/// A Redis that is away is tried again, and says so elsewhere: whoever does not hear of the process sees that it is silent.
actor WorkerReporter {
  nonisolated let loop: EventLoop
  nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
  private let store: StoreConfiguration
  /// While it reports.
  private var shards: Shards?
  private let health: Health
  private let metrics: MetricRegistry
  private let logger: Logger
  private let settings: @Sendable () -> [String: String]
  private let differing: Gauge
  /// What was told of settings that differ, and how many reports were written since the others' were read.
  private var told: (differences: [SettingDifference], reports: Int) = ([], 0)
  private var unreadyLog = UnreadyLog()
  /// The others' reports are read with each so many of its own.
  private static let reportsToLook = 6
  /// What does not change, or is told from outside.
  private var process: WorkerReport
  private var work: Task<Void, Never>?
  private var isClosed = false

  /// How long the end may take, and how often a Redis is looked for that is away, in milliseconds.
  private static let (endMilliseconds, retryMilliseconds) = (1_000, 500)

  /// - Parameters:
  ///   - name: what events and logs call the process, without a lane's number.
  ///   - roles: the stages that it runs.
  ///   - admin: where its admin server listens.
  ///   - settings: those that should be the same in all workers, as they are now.
  init(
    on loop: EventLoop, _ store: StoreConfiguration, _ name: Name, roles: [String], admin: SocketAddress, health: Health,
    metrics: MetricRegistry, logger: Logger, settings: @escaping @Sendable () -> [String: String]
  ) {
    (self.loop, self.health, self.metrics) = (loop, health, metrics)
    (self.logger, self.settings) = (logger, settings)
    differing = metrics.make(MetricNames.settingsDiffering)
    let now = WallClock.milliseconds()
    process = WorkerReport(name: name, roles: roles, version: Program.version, started: now, written: now)
    process.admin = "http://\(Machine.reachable(admin))"
    var store = store
    // Nobody waits for it, and it is soon followed by another.
    store.callDeadlineMilliseconds = min(store.callDeadlineMilliseconds, Workers.intervalMilliseconds)
    self.store = store
  }

  /// Begins; once, when it is known that the Redis is one to work with.
  func start(lanes: Int) {
    guard !isClosed, work == nil else { return }
    process.lanes = lanes
    let shards = Shards(on: loop, store, clientName: "carillon-report")
    self.shards = shards
    shards.start()
    work = Task { await beat() }
  }

  /// Says where devices connect, from the next report on.
  func devices(at address: SocketAddress) { process.devices = [DeviceURL.text(Machine.reachable(address))] }

  /// Reports at once, without being waited for: something has changed that whoever asks should see.
  func hasChanged() {
    guard work != nil else { return }
    Task { await report() }
  }

  private func report() async {
    guard !isClosed, let shards, shards.isUp else { return }
    // What keeps Redis from taking it is told by the lanes, which need it more.
    try? await Workers(shards).beat(standing)
    told.reports += 1
    if told.reports % Self.reportsToLook == 1 { await compare(shards) }
  }

  /// Tells how the settings of this worker differ from those of others.
  private func compare(_ shards: Shards) async {
    guard let workers = try? await Workers(shards).list(), !isClosed else { return }
    let differences = SettingDifference.among(workers).filter { $0.concerns(process.name) }
    differing.set(differences.count)
    // The first look of a worker that has just begun is that of a rolling change: it is told once, and so is each change of it.
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

  /// Logs the conditions that have kept the process from being ready for long, so that the log names each, whoever sets it.
  private func logUnready() {
    let changes = unreadyLog.look(health.unready, at: WallClock.milliseconds())
    for condition in changes.lasting {
      logger.warning("not ready", ["condition": condition.name, "lane": condition.lane, "reason": condition.reason])
    }
    for condition in changes.ended { logger.info("ready again", ["condition": condition.name, "lane": condition.lane]) }
  }

  /// How the process is now.
  private var standing: WorkerReport {
    var report = process
    report.written = WallClock.milliseconds()
    let unready = health.unready
    report.unreadyCount = unready.count
    // The end stands first, for not all may have room.
    let sorted = unready.filter { $0.name == "draining" } + unready.filter { $0.name != "draining" }
    report.unready = sorted.map { .init(name: $0.name, lane: $0.lane.isEmpty ? nil : $0.lane, reason: $0.reason, since: $0.since) }
    report.connections = metrics.sum(of: MetricNames.connections).map { Int($0) }
    report.partitions = metrics.sum(of: MetricNames.assignedPartitions).map { Int($0) }
    report.laneLags = laneLags
    report.clockAhead = metrics.values(of: MetricNames.clockOffset).first.map { Int64($0.value * 1000) }
    report.settings = settings()
    return report
  }

  /// How far the lanes are behind in `deliveries`: those first that are the furthest.
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

  /// Takes the report away, where Redis answers soon, and ends.
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
  /// An address as others can reach it: by the host's name where it stands for every address of the machine.
  static func reachable(_ address: SocketAddress) -> SocketAddress {
    address.isAnyAddress ? SocketAddress(host: hostName, port: address.port) : address
  }
}
