import Cryptography
import EventLoop
import Extensions
import FanOut
import HTTP
import Ingress
import Kafka
import Notifications
import Redis
import Store
import Transform
import Worker

/// A cluster in one process. Its parts start in the order of their dependencies, and end in the opposite order.
struct UpProcess: Sendable {
  /// The addresses at which it listens.
  struct Places: Sendable {
    var listen: UpAddress
    var admin: UpAddress
    var ingress: UpAddress
    var media: UpAddress
    /// Nil for a free one.
    var kafkaPort: Int?
    /// Nil for a free one.
    var redisPort: Int?
  }

  private let values: SettingValues
  private let places: Places
  private let keys: (content: InForce<KeyRing>, files: WatchedFiles)?
  /// The same keys for publishers' tokens.
  private let publisherKeys = InForce<[SignatureKey]>([])
  private let claim: UpClaim?
  private let log: LogWriter
  private let logger: Logger
  private let health = Health()
  private let metrics = MetricRegistry()
  private let descriptors: DescriptorPlan
  private let tls: TLSFiles?

  /// A transform lane, a fan-out lane and an ingress lane.
  private static let lanes = 3
  /// Enough for some additional workers of each role. The embedded broker keeps 5 MiB for each.
  private static let partitions = 8
  private static let drainMilliseconds = 5000

  /// - Parameters:
  ///   - claim: the right to be found by the tools; nil for a further one.
  /// - Throws: an error if the process may open too few descriptors.
  init(_ values: SettingValues, _ places: Places, claim: UpClaim?) throws {
    self.values = values
    self.places = places
    self.claim = claim
    descriptors = try DescriptorPlan(
      raisingFor: Self.lanes, connections: values[FanOutOptions.connections] + IngressSettings.Defaults.connections,
      servesMedia: values[MediaOptions.folder] != nil)
    // On a terminal the banner is more important.
    log = LogSettings.writer(values, defaultLevel: .warning)
    logger = Logger(log, component: "up")
    tls = try TLSFiles.open(values, logger)
    keys = try FanOutOptions.keys(values, logger) { [publisherKeys] ring in
      publisherKeys.replace(with: ring.keys.map { SignatureKey(secret: $0) })
    }
  }

  /// Runs it until it is told to end.
  func run() async throws -> ExitCode {
    defer { log.close() }
    StandardOutput.whenItFails(.ignore)
    Allocator.returnMemoryWhenIdle()
    metrics.showProcess(version: Program.version, role: "up", log: log)
    metrics.show(health)
    tls?.show(in: metrics)
    descriptors.report(logger, values)
    let control = EventLoop(name: "control")
    let signals = StopSignals(on: control)
    let extensions = try await ExtensionsInForce(values, logger, metrics)
    let watch = FileWatch([tls?.files, keys?.files].compactMap(\.self), metrics)
    try await signals.watch(reload: FileWatch.reload(watch, and: extensions.reload))
    await watch?.start()
    let parts = UpParts()
    let work = Task {
      do {
        let running = try await start(parts, control, signals, extensions.source)
        try claim?.publish(running)
        StandardOutput.write(
          values[AnswerSettings.json]
            ? UpBanner.json(running) : UpBanner.text(running, isFound: claim != nil, keyFile: values[FanOutOptions.keyFile]))
        StandardOutput.flush()
      } catch {
        await signals.end(.failure(error))
      }
    }
    let ending = await signals.ending()
    work.cancel()
    if case .signal = ending { progress("ending; nothing is kept") }
    await parts.stop(withinMilliseconds: Self.drainMilliseconds, logger)
    await work.value
    await extensions.close()
    await watch?.close()
    if case .failure(let error) = ending { throw error }
    return .done
  }

  private func start(
    _ parts: UpParts, _ control: EventLoop, _ signals: StopSignals, _ extensions: InForce<ExtensionsFile>
  ) async throws -> RunningCluster {
    let topics = Topics()
    // It keeps nothing, so anybody may load it.
    let broker = try EmbeddedBroker(
      topics: (topics.all + [topics.load]).map { ($0, Int32(topics.partitions(of: $0, most: Self.partitions))) })
    try await parts.keep { await broker.close() }
    let kafka =
      try await values.listening(by: UpCommand.kafkaPort) { try await fixedPort(of: broker, on: control, parts)?.description }
      ?? broker.bootstrapServers.joined(separator: ",")
    progress("Kafka at \(kafka)")
    if let port = places.redisPort {
      try await values.listening(by: UpCommand.redisPort) {
        try await UpAddress.checkIsFree(SocketAddress(host: "127.0.0.1", port: port), on: control)
      }
    }
    let redis = try await Task(executorPreference: control) {
      try await PrivateServer.start(on: control, listening: .port(places.redisPort), hasPassword: true)
    }.value
    try await parts.keep { await redis.stop() }
    progress("Redis at \(redis.address)")
    let admin = try await values.listening(by: UpCommand.admin) {
      try await places.admin.listening { try await AdminServer.start(at: $0, health: health, metrics: metrics) }
    }
    try await parts.keep { await admin.close() }

    // The broker never answers a member whose session ends while it waits to join. It joins again after this interval.
    let place = ClusterPlace(
      topics: topics, kafka: broker.configuration.merging(["max.poll.interval.ms": "10000"]), store: StoreConfiguration(redis.address),
      name: ClusterSettings.defaultName)
    let media = try await values.listening(by: MediaOptions.listen) {
      try await places.media.listening {
        try await MediaOptions.serve(values, at: $0, keys: keys?.content, cluster: place.name, descriptors, tls, logger, metrics)
      }
    }
    if let media {
      try await parts.keep(media.server)
      progress("media at \(media.links.base)")
    }
    let (requests, sessions) = (SharedSettings.transform(values, extensions), SharedSettings.fanOut(values, keys: keys?.content))
    let reporter = WorkerReporter(
      on: control, place.store, "up", roles: ["transform", "fan-out", "ingress"], admin: ("http", await admin.address), health: health,
      metrics: metrics,
      logger: logger
    ) { requests().merging(sessions()) { first, _ in first } }
    try await parts.keep { await reporter.close() }
    await reporter.start(lanes: Self.lanes)
    let failures = LaneFailures(drainMilliseconds: Self.drainMilliseconds, restarts: metrics.make(MetricNames.laneRestarts)) { error in
      Task { await signals.end(.failure(error)) }
    }
    let address = try await startLanes(place, media?.links, parts, failures, extensions)
    let ingress = try await startIngress(place, parts, failures)
    await reporter.devices(at: address, isSecure: tls != nil)
    let isOther = !places.listen.isFixed && address != places.listen.wanted
    progress("devices at \(address)" + (isOther ? ", for \(places.listen.wanted) is taken" : ""))
    progress("requests at \(ingress)")
    progress("waiting for the transform worker's partitions, about 3 s")
    while !health.isReady { try await Task.sleep(for: .milliseconds(20)) }
    await reporter.hasChanged()
    return RunningCluster(
      kafka: kafka, redis: redis.address.textWithPassword, devices: DeviceURL.text(address, isSecure: tls != nil),
      page: values[UpCommand.web] ? DeviceURL.page(address, isSecure: tls != nil) : nil, admin: "http://\(await admin.address)",
      requests: RoleProcess.Clients.requests.url(ingress, isSecure: tls != nil))
  }

  /// The broker's address at the requested port; nil if none was requested.
  private func fixedPort(of broker: EmbeddedBroker, on loop: EventLoop, _ parts: UpParts) async throws -> SocketAddress? {
    guard let number = places.kafkaPort, let server = broker.bootstrapServers.first else { return nil }
    let port = try EmbeddedBrokerPort(number, of: server, on: loop)
    try await port.listen()
    try await parts.keep { await port.close() }
    return port.address
  }

  private func startLanes(
    _ place: ClusterPlace, _ media: MediaLinkSettings?, _ parts: UpParts, _ failures: LaneFailures, _ extensions: InForce<ExtensionsFile>
  ) async throws -> SocketAddress {
    let (values, keys, listen, permit, descriptors) = (values, keys?.content, places.listen, CrashLoopPermit(), descriptors)
    let tls = tls?.server(handshakesPerSecond: values[FanOutOptions.handshakesPerSecond])
    let (transformMetrics, fanOutMetrics) = (TransformMetrics(metrics), FanOutMetrics(metrics))
    let transform = LaneHost("transform-0", logger: logger.with(component: "transform"), health: health, failures: failures) { lane in
      TransformLane(
        TransformSettings(values, place, worker: "up/transform", extensions: extensions, permit: permit), on: lane.loop,
        logger: lane.logger, health: lane.health, metrics: transformMetrics, onFatal: lane.onFatal)
    }
    guard await parts.lanes.add(transform) else { throw CancellationError() }
    _ = try await transform.start()
    let fanOut = LaneHost("fan-out-0", logger: logger.with(component: "fan-out"), health: health, failures: failures) { lane in
      var settings = FanOutSettings(values, place, listen: lane.address ?? listen.wanted, keys: keys, worker: "up/fan-out")
      settings.takesAnotherPort = lane.address == nil && !listen.isFixed
      settings.tls = tls
      settings.media = media
      settings.servesWeb = values[UpCommand.web]
      settings.maximumDescriptor = descriptors.maximum
      return FanOutLane(
        settings, on: lane.loop, logger: lane.logger, health: lane.health, metrics: fanOutMetrics, onFatal: lane.onFatal)
    }
    guard await parts.lanes.add(fanOut), let address = try await values.listening(by: UpCommand.listen, fanOut.start) else {
      throw CancellationError()
    }
    return address
  }

  private func startIngress(_ place: ClusterPlace, _ parts: UpParts, _ failures: LaneFailures) async throws -> SocketAddress {
    let (values, listen, descriptors, fates) = (values, places.ingress, descriptors, FateDesk.ofCluster(place, values, logger))
    let tls = tls?.server()
    let admission: PublisherAdmission = keys == nil ? .anyone : .token(publisherKeys)
    let metrics = IngressMetrics(metrics)
    let host = LaneHost("ingress-0", logger: logger.with(component: "ingress"), health: health, failures: failures) { lane in
      var settings = IngressSettings(values, place, listen: lane.address ?? listen.wanted, admission: admission)
      settings.server.tls = tls
      settings.server.takesAnotherPort = lane.address == nil && !listen.isFixed
      settings.server.maximumDescriptor = descriptors.maximum
      return IngressLane(
        settings, on: lane.loop, fates: fates, logger: lane.logger, health: lane.health, metrics: metrics, onFatal: lane.onFatal)
    }
    guard await parts.lanes.add(host), let address = try await values.listening(by: UpCommand.ingress, host.start) else {
      throw CancellationError()
    }
    return address
  }

  private func progress(_ text: String) { StandardError.plain("up: \(text)") }
}

/// The running parts, to be ended in the opposite order.
private actor UpParts {
  nonisolated let lanes = ProcessLanes()
  private var media: MediaServer?
  /// The ends of the other parts.
  private var ends: [@Sendable () async -> Void] = []
  private var isStopping = false

  /// Keeps the end of a part that has started. After the order to end, which has not seen the part, it ends it.
  func keep(_ end: @escaping @Sendable () async -> Void) async throws {
    guard isStopping else { return ends.append(end) }
    await end()
    throw CancellationError()
  }

  /// Keeps the server that ends together with the lanes.
  func keep(_ media: MediaServer) async throws {
    guard isStopping else { return self.media = media }
    await media.close(withinMilliseconds: 0)
    throw CancellationError()
  }

  func stop(withinMilliseconds milliseconds: Int, _ logger: Logger) async {
    isStopping = true
    await lanes.stop(withinMilliseconds: milliseconds, logger) { [media] in await media?.close(withinMilliseconds: milliseconds) }
    for end in ends.reversed() { await end() }
  }
}
