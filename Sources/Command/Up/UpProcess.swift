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
  private let values: SettingValues
  private let listen: UpAddress
  /// Nil for a free one.
  private let (kafkaPort, redisPort): (Int?, Int?)
  private let keys: (content: InForce<KeyRing>, files: WatchedFiles)?
  /// The same keys for publishers' tokens.
  private let publisherKeys = InForce<[SignatureKey]>([])
  private let claim: UpClaim?
  private let process: RoleProcess

  /// The roles of the process, each with one lane.
  private enum Role: String, CaseIterable {
    case transform
    case fanOut = "fan-out"
    case ingress

    var lane: String { "\(rawValue)-0" }
  }

  /// Enough for some additional workers of each role. The embedded broker keeps 5 MiB for each.
  private static let partitions = 8

  /// - Parameters:
  ///   - claim: the right to be found by the tools; nil for a further one.
  /// - Throws: an error if the process may open too few descriptors.
  init(_ values: SettingValues, claim: UpClaim?) throws {
    (self.values, self.claim) = (values, claim)
    listen = UpAddress(values, UpCommand.listen)
    (kafkaPort, redisPort) = (UpAddress.port(values[UpCommand.kafkaPort]), UpAddress.port(values[UpCommand.redisPort]))
    // On a terminal the banner is more important.
    process = try RoleProcess(
      "up", values, lanes: Role.allCases.map(\.lane), connections: values[FanOutOptions.connections] + IngressSettings.Defaults.connections,
      servesMedia: values[MediaOptions.folder] != nil, drainMilliseconds: 5_000, logLevel: .warning)
    keys = try FanOutOptions.keys(values, process.logger) { [publisherKeys] ring in
      publisherKeys.replace(with: ring.keys.map { SignatureKey(secret: $0) })
    }
  }

  /// Runs it until it is told to end.
  func run() async throws -> ExitCode {
    defer { process.log.close() }
    let extensions = try await ExtensionsInForce(values, process.logger, process.metrics)
    let watch = try await process.begin(rereading: keys?.files, extensions.files)
    process.descriptors.report(process.logger, values)
    let parts = UpParts()
    let work = Task {
      do {
        let running = try await start(parts, extensions.source)
        try claim?.publish(running)
        StandardOutput.write(
          values[AnswerSettings.json]
            ? UpBanner.json(running) : UpBanner.text(running, isFound: claim != nil, keyFile: values[FanOutOptions.keyFile]))
        StandardOutput.flush()
      } catch {
        await process.signals.end(.failure(error))
      }
    }
    let ending = await process.signals.ending()
    work.cancel()
    if case .signal = ending { progress("ending; nothing is kept") }
    await parts.stop(withinMilliseconds: process.drainMilliseconds, process.logger)
    await work.value
    await extensions.close()
    await watch?.close()
    if case .failure(let error) = ending { throw error }
    return .done
  }

  private func start(_ parts: UpParts, _ extensions: InForce<ExtensionsFile>) async throws -> RunningCluster {
    let (control, tls) = (process.control, process.tls)
    let topics = Topics()
    // It keeps nothing, so anybody may load it.
    let broker = try EmbeddedBroker(
      topics: (topics.all + [topics.load]).map { ($0, Int32(topics.partitions(of: $0, most: Self.partitions))) })
    try await parts.keep { await broker.close() }
    let kafka =
      try await values.listening(by: UpCommand.kafkaPort) { try await fixedPort(of: broker, on: control, parts)?.description }
      ?? broker.bootstrapServers.joined(separator: ",")
    progress("Kafka at \(kafka)")
    if let port = redisPort {
      try await values.listening(by: UpCommand.redisPort) {
        try await UpAddress.checkIsFree(SocketAddress(host: "127.0.0.1", port: port), on: control)
      }
    }
    let redis = try await Task(executorPreference: control) {
      try await PrivateServer.start(on: control, listening: .port(redisPort), hasPassword: true)
    }.value
    try await parts.keep { await redis.stop() }
    progress("Redis at \(redis.address)")
    let admin = try await values.listening(by: UpCommand.admin) {
      try await UpAddress(values, UpCommand.admin).listening {
        try await AdminServer.start(at: $0, health: process.health, metrics: process.metrics)
      }
    }
    try await parts.keep { await admin.close() }

    // The broker never answers a member whose session ends while it waits to join. It joins again after this interval.
    let place = ClusterPlace(
      topics: topics, kafka: broker.configuration.merging(["max.poll.interval.ms": "10000"]), store: StoreConfiguration(redis.address),
      name: ClusterSettings.defaultName)
    let media = try await values.listening(by: MediaOptions.listen) {
      try await UpAddress(values, MediaOptions.listen).listening {
        try await MediaOptions.serve(values, at: $0, keys: keys?.content, cluster: place.name, of: process)
      }
    }
    if let media {
      try await parts.keep(media.server)
      progress("media at \(media.links.base)")
    }
    let (requests, sessions) = (SharedSettings.transform(values, extensions), SharedSettings.fanOut(values, keys: keys?.content))
    let reporter = WorkerReporter(
      of: process, place.store, "up", roles: Role.allCases.map(\.rawValue), admin: ("http", await admin.address)
    ) { requests().merging(sessions()) { first, _ in first } }
    try await parts.keep { await reporter.close() }
    await reporter.start(lanes: Role.allCases.count)
    let address = try await startLanes(place, media?.links, parts, extensions)
    let ingress = try await startIngress(place, parts)
    await reporter.devices(at: address, isSecure: tls != nil)
    let isOther = !listen.isFixed && address != listen.wanted
    progress("devices at \(address)" + (isOther ? ", for \(listen.wanted) is taken" : ""))
    progress("requests at \(ingress)")
    progress("waiting for the transform worker's partitions, about 3 s")
    while !process.health.isReady { try await Task.sleep(for: .milliseconds(20)) }
    await reporter.hasChanged()
    return RunningCluster(
      kafka: kafka, redis: redis.address.textWithPassword, devices: DeviceURL.text(address, isSecure: tls != nil),
      page: values[UpCommand.web] ? DeviceURL.page(address, isSecure: tls != nil) : nil, admin: "http://\(await admin.address)",
      requests: RoleProcess.Clients.requests.url(ingress, isSecure: tls != nil))
  }

  /// The broker's address at the requested port; nil if none was requested.
  private func fixedPort(of broker: EmbeddedBroker, on loop: EventLoop, _ parts: UpParts) async throws -> SocketAddress? {
    guard let number = kafkaPort, let server = broker.bootstrapServers.first else { return nil }
    let port = try EmbeddedBrokerPort(number, of: server, on: loop)
    try await port.listen()
    try await parts.keep { await port.close() }
    return port.address
  }

  private func startLanes(
    _ place: ClusterPlace, _ media: MediaLinkSettings?, _ parts: UpParts, _ extensions: InForce<ExtensionsFile>
  ) async throws -> SocketAddress {
    let (values, keys, listen, permit, descriptors) = (values, keys?.content, listen, CrashLoopPermit(), process.descriptors)
    let tls = process.tls?.server(handshakesPerSecond: values[FanOutOptions.handshakesPerSecond])
    let (transformMetrics, fanOutMetrics) = (TransformMetrics(process.metrics), FanOutMetrics(process.metrics))
    let transform = host(.transform) { lane in
      TransformLane(
        TransformSettings(values, place, worker: "up/transform", extensions: extensions, permit: permit), in: lane,
        metrics: transformMetrics)
    }
    guard await parts.lanes.add(transform) else { throw CancellationError() }
    _ = try await transform.start()
    let fanOut = host(.fanOut) { lane in
      var settings = FanOutSettings(values, place, listen: lane.address ?? listen.wanted, keys: keys, worker: "up/fan-out")
      settings.takesAnotherPort = lane.address == nil && !listen.isFixed
      settings.tls = tls
      settings.media = media
      settings.servesWeb = values[UpCommand.web]
      settings.maximumDescriptor = descriptors.maximum
      return FanOutLane(settings, in: lane, metrics: fanOutMetrics)
    }
    guard await parts.lanes.add(fanOut), let address = try await values.listening(by: UpCommand.listen, fanOut.start) else {
      throw CancellationError()
    }
    return address
  }

  private func startIngress(_ place: ClusterPlace, _ parts: UpParts) async throws -> SocketAddress {
    let (values, listen, descriptors) = (values, UpAddress(values, UpCommand.ingress), process.descriptors)
    let (tls, fates) = (process.tls?.server(), FateDesk.ofCluster(place, values, process.logger))
    let admission: PublisherAdmission = keys == nil ? .anyone : .token(publisherKeys)
    let metrics = IngressMetrics(process.metrics)
    let ingress = host(.ingress) { lane in
      var settings = IngressSettings(values, place, listen: lane.address ?? listen.wanted, admission: admission)
      settings.server.tls = tls
      settings.server.takesAnotherPort = lane.address == nil && !listen.isFixed
      settings.server.maximumDescriptor = descriptors.maximum
      return IngressLane(settings, in: lane, fates: fates, metrics: metrics)
    }
    guard await parts.lanes.add(ingress), let address = try await values.listening(by: UpCommand.ingress, ingress.start) else {
      throw CancellationError()
    }
    return address
  }

  private func host(_ role: Role, make: @escaping @Sendable (LanePlace) -> any WorkerLane) -> LaneHost {
    process.host(role.lane, component: role.rawValue, make: make)
  }

  private func progress(_ text: String) { StandardError.plain("up: \(text)") }
}

/// The running parts, to be ended in the opposite order.
private actor UpParts {
  nonisolated let lanes = ProcessLanes()
  private var media: LoopServer?
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
  func keep(_ media: LoopServer) async throws {
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
