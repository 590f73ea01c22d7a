import EventLoop
import Glibc
import JSON
import Kafka
import Notifications
import Redis
import Store
import Worker

/// A process of one role from its start to its end, and what `carillon up` has in common with it.
///
/// A role listens for operators first and waits for its dependencies without a limit. Then it runs its lanes, and drains them when it is asked
/// to end. Otherwise it ends only for wrong usage or configuration, and for Kafka clients that fail for good repeatedly. Then its
/// supervisor must start it again.
struct RoleProcess: Sendable {
  let role: String
  let values: SettingValues
  let log: LogWriter
  let logger: Logger
  let health: Health
  let metrics = MetricRegistry()
  let descriptors: DescriptorPlan
  /// The certificate of its servers; nil if they take no TLS.
  let tls: TLSFiles?
  let control: EventLoop
  let signals: StopSignals
  /// How long its lanes may take to finish their work.
  let drainMilliseconds: Int

  /// The clients of a role.
  enum Clients: String {
    /// Devices, if the role has clients at all.
    case devices
    /// Publishers of requests.
    case requests

    /// Their address as a URL.
    func url(_ address: SocketAddress, isSecure: Bool) -> String {
      self == .devices ? DeviceURL.text(address, isSecure: isSecure) : address.localURL("/v1/requests", isSecure: isSecure)
    }
  }

  /// A process of one role.
  ///
  /// - Parameter connections: the most clients of one lane.
  /// - Throws: an error if the process may open too few descriptors.
  init(_ role: String, _ values: SettingValues, connections: Int = 0, servesMedia: Bool = false) throws {
    let lanes = values[RoleSettings.lanes]
    try self.init(
      role, values, lanes: (0..<lanes).map { "\(role)-\($0)" }, connections: lanes * connections, servesMedia: servesMedia,
      drainMilliseconds: values[RoleSettings.drain].wholeMilliseconds)
    if tls == nil, values[TLSOptions.admin] { throw UsageError(.contradiction, "--admin-tls needs --tls-certificate and --tls-key") }
  }

  /// A process with these lanes.
  ///
  /// - Parameter connections: the most clients of all lanes.
  init(
    _ role: String, _ values: SettingValues, lanes: [String], connections: Int, servesMedia: Bool, drainMilliseconds: Int,
    logLevel: LogLevel = .info
  ) throws {
    (self.role, self.values, self.drainMilliseconds) = (role, values, drainMilliseconds)
    health = Self.health(of: lanes)
    descriptors = try DescriptorPlan(raisingFor: lanes.count, connections: connections, servesMedia: servesMedia)
    log = LogSettings.writer(values, defaultLevel: logLevel)
    logger = Logger(log, component: role)
    tls = try TLSFiles.open(values, logger)
    control = EventLoop(name: "control")
    signals = StopSignals(on: control)
  }

  /// The name of a lane of this process in events and logs.
  func worker(_ lane: Int) -> Name { "\(workerName)/\(lane)" }

  /// Makes the health of a process that has started nothing yet. Every lane says later that it has started; until then `/readyz` is 503.
  static func health(of lanes: [String]) -> Health {
    let health = Health()
    for lane in lanes { health.forLane(lane).set("started", ready: false, "starting") }
    return health
  }

  /// Makes the host of a lane. Too many permanent failures of lanes end the process in order.
  func host(_ name: String, component: String? = nil, make: @escaping @Sendable (LanePlace) -> any WorkerLane) -> LaneHost {
    let failures = LaneFailures(
      drainMilliseconds: min(drainMilliseconds, LaneFailures.longestDrain), restarts: metrics.make(MetricNames.laneRestarts)
    ) { [signals] error in
      Task { await signals.end(.failure(error)) }
    }
    return LaneHost(name, logger: logger.with(component: component ?? role), health: health, failures: failures, make: make)
  }

  /// Prepares the process, and has files read again when they change, beside the certificate's. SIGHUP ends a process without any.
  func begin(rereading files: WatchedFiles?...) async throws -> FileWatch? {
    StandardOutput.whenItFails(.ignore)
    Allocator.returnMemoryWhenIdle()
    // A program that reads the first line of the log may send a signal.
    let watch = FileWatch(([tls?.files] + files).compactMap(\.self), metrics)
    try await signals.watch(reload: watch?.reload)
    await watch?.start()
    metrics.showProcess(version: Program.version, role: role, log: log)
    metrics.show(health)
    tls?.show(in: metrics)
    return watch
  }

  private var workerName: Name { values[RoleSettings.worker] ?? "\(role)@\(Machine.hostName):\(getpid())" }

  /// Runs the process.
  ///
  /// - Parameters:
  ///   - written: the topics that its lanes write to.
  ///   - listen: the setting of the clients' address; nil without clients.
  ///   - unreadyFor: how long its lanes continue after the order to end, although it is not ready.
  ///   - serving: the lanes' clients.
  ///   - settings: the current settings that should be the same in all workers.
  ///   - files: files that are read again when they change, beside the certificate's.
  ///   - whenEnding: ends the parts beside the lanes within the given milliseconds, while the lanes end.
  ///   - whenEnded: ends the parts that are needed until the lanes have ended.
  ///   - makeHost: makes the lane of this number; `first` is the clients' address of the first lane.
  func run(
    _ place: ClusterPlace, writing written: [String], listen: Setting<SocketAddress>? = nil, unreadyFor: Duration = .zero,
    serving clients: Clients = .devices, settings: @escaping @Sendable () -> [String: String],
    rereading files: WatchedFiles?, whenEnding: (@Sendable (Int) async -> Void)? = nil, whenEnded: () async -> Void = {},
    makeHost: @escaping @Sendable (RoleProcess, Int, _ first: SocketAddress?) -> LaneHost
  ) async throws -> ExitCode {
    defer { log.close() }
    let watch = try await begin(rereading: files)
    logger.info(
      "starting",
      ["version": Program.version, "pid": Int(getpid()), "kafka": place.kafka.servers, "redis": "\(place.store)"])
    descriptors.report(logger, values)
    for (key, text, source) in values.given { logger.info("setting", ["key": key, "value": text, "from": source.description]) }

    let admin = try await values.listening(by: RoleSettings.admin) {
      try await AdminServer.start(
        at: values[RoleSettings.admin], health: health, metrics: metrics, tls: values[TLSOptions.admin] ? tls?.server() : nil)
    }
    let scheme = values[TLSOptions.admin] ? "https" : "http"
    let adminURL = "\(scheme)://\(await admin.address)"
    logger.info("the admin server listens", ["admin": adminURL])

    let kafka = KafkaWatch(kafka: place.kafka, topics: written, logger: logger, health: health)
    let watching = Task { await kafka.run() }
    let redis = RedisWait(on: control)
    let lanes = ProcessLanes()
    let reporter = WorkerReporter(of: self, place.store, workerName, roles: [role], admin: (scheme, await admin.address), settings)
    let work = Task {
      do { try await start(place, listen, clients, redis, lanes, reporter, adminURL, makeHost) } catch {
        await signals.end(.failure(error))
      }
    }
    let ending = await signals.ending()
    // At once, so that a load balancer sends no more devices.
    health.set("draining", ready: false, "the process is ending")
    await reporter.hasChanged()
    work.cancel()
    watching.cancel()
    await redis.cancel()
    let drain = drainMilliseconds - (await goOn(for: min(unreadyFor.wholeMilliseconds, drainMilliseconds / 2), ending, lanes))
    await lanes.stop(withinMilliseconds: drain, logger) { await whenEnding?(drain) }
    await work.value
    await watching.value
    await whenEnded()
    await reporter.close()
    await admin.close()
    await watch?.close()
    if case .failure(let error) = ending { throw error }
    logger.info("ended")
    return .done
  }

  /// Continues for clients that have not noticed the readiness yet; returns the milliseconds.
  private func goOn(for milliseconds: Int, _ ending: Ending, _ lanes: ProcessLanes) async -> Int {
    guard milliseconds > 0, case .signal = ending, await lanes.count > 0 else { return 0 }
    logger.info("not ready; work continues for a while", ["forMs": milliseconds])
    try? await Task.sleep(for: .milliseconds(milliseconds))
    return milliseconds
  }

  private func listening<Done>(by setting: Setting<SocketAddress>?, _ body: () async throws -> Done) async throws -> Done {
    guard let setting else { return try await body() }
    return try await values.listening(by: setting, body)
  }

  private func start(
    _ place: ClusterPlace, _ listen: Setting<SocketAddress>?, _ clients: Clients, _ redis: RedisWait, _ lanes: ProcessLanes,
    _ reporter: WorkerReporter, _ adminURL: String,
    _ makeHost: @escaping @Sendable (RoleProcess, Int, SocketAddress?) -> LaneHost
  ) async throws {
    // The ingress needs only Kafka. A request is safe there, whatever becomes of Redis.
    if clients == .devices {
      do {
        try await redis.untilSuitable(place.store.address, logger: logger, health: health)
      } catch {
        if error.code == .closed { return }
        throw error
      }
    }
    await reporter.start(lanes: values[RoleSettings.lanes])
    var first: SocketAddress?
    for number in 0..<values[RoleSettings.lanes] {
      let host = makeHost(self, number, first)
      guard await lanes.add(host) else { return }
      first = try await listening(by: listen) { try await host.start() } ?? first
      if let first, clients == .devices { await reporter.devices(at: first, isSecure: tls != nil) }
    }
    while !health.isReady { try await Task.sleep(for: .milliseconds(20)) }
    await reporter.hasChanged()
    let address = first.map { clients.url($0, isSecure: tls != nil) }
    logger.info("ready", ["admin": adminURL, clients.rawValue: address ?? "none"])
    guard values[AnswerSettings.json] else { return }
    StandardOutput.json(JSONValue.object(present: ["admin": adminURL, clients.rawValue: address]).text)
    StandardOutput.flush()
  }
}
