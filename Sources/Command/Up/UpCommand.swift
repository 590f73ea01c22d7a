import EventLoop
import Worker

/// `carillon up`.
enum UpCommand {
  static let listen = Setting(
    "up.listen", .address, default: SocketAddress(host: "127.0.0.1", port: 7171),
    "Where devices connect. Without this flag another port is used if this one is not free.")
  static let admin = Setting(
    "up.admin", .address, default: SocketAddress(host: "127.0.0.1", port: 7172),
    "Where /metrics, /livez and /readyz are. Without this flag another port is used if this one is not free.")
  static let ingress = Setting(
    "up.ingress", .address, default: SocketAddress(host: "127.0.0.1", port: 7174),
    "Where publishers send HTTP requests. Without this flag another port is used if this one is not free.")
  static let kafkaPort = Setting<Int?>(
    "up.kafka-port", .integer(0...65_535), "A port of 127.0.0.1 that leads to its Kafka, which has a free one. Absent or 0: none.")
  static let redisPort = Setting<Int?>(
    "up.redis-port", .integer(0...65_535), "The port of 127.0.0.1 for its Redis. Absent or 0: a free one.")
  static let web = Setting("up.web", .boolean, default: true, "Serves browsers the notification center, at /device/.")
  private static let isNew = Setting(
    "up.new", .boolean, default: false,
    "Start another one beside a running one. The tools still find the first: give them --kafka and --redis of this one, which --json prints."
  )

  static let command = Command(
    "up", "runs a whole cluster on this machine, for trials and development",
    discussion:
      "One process with an embedded Kafka broker, a private redis-server, and a lane of each role. The broker keeps 5 MiB of each partition, and drops the oldest records beyond that. The process keeps nothing after it ends (SIGINT or SIGTERM). The tools of the same user find it without flags, by a file in $XDG_RUNTIME_DIR/carillon, /tmp/carillon-UID (or in $TMPDIR if set), or ~/.carillon: the first of them that no other user has made. With --json one line on standard output has all addresses when it is ready. The exit code is 1 if one is already running.",
    groups: [
      SettingGroup("Up", [listen, admin, ingress, web, isNew, AnswerSettings.json], advanced: [kafkaPort, redisPort]),
      FanOutOptions.sessions, TransformOptions.stage, MediaOptions.group, RequestSettings.group, TLSOptions.upGroup,
      LogSettings.group,
    ],
    examples: [
      Example("up", "everything, on this terminal"),
      Example("up --json --listen 127.0.0.1:0", "for a script: where everything is, on one line"),
    ]
  ) { values in
    var claim: UpClaim?
    do throws(Failure) {
      claim = try UpClaim.take()
      if claim == nil, !values[isNew] { return alreadyRuns() }
    } catch {
      StandardError.line("\(error); until then the tools find it only with --kafka and --devices")
    }
    defer { claim?.release() }
    return try await UpProcess(values, claim: claim).run()
  }

  private static func alreadyRuns() -> ExitCode {
    guard let running = RunningCluster.find() else {
      StandardError.line("'carillon up' is already starting in another process; '--new' starts one beside it")
      return .answerIsNo
    }
    StandardError.line("'carillon up' already runs as process \(running.pid); '--new' starts one beside it")
    StandardError.plain(UpBanner.places(running, isFound: true))
    return .answerIsNo
  }
}

/// An address at which `carillon up` listens.
struct UpAddress: Sendable {
  let wanted: SocketAddress
  /// Whether it was given by the person, so that another port is wrong.
  let isFixed: Bool

  init(_ values: SettingValues, _ setting: Setting<SocketAddress>) {
    (wanted, isFixed) = (values[setting], values.source(of: setting) != .standard)
  }

  /// The wanted port; nil for a free one.
  static func port(_ given: Int?) -> Int? { given == 0 ? nil : given }

  /// Listens there, or at a port that the system chooses if the usual one is in use. It tries the port, since another process may take it
  /// at any time.
  func listening<Server>(_ start: (SocketAddress) async throws -> Server) async throws -> Server {
    do {
      return try await start(wanted)
    } catch let error as EventLoopError where error.code == .addressInUse && !isFixed {
      return try await start(SocketAddress(host: wanted.host, port: 0))
    }
  }

  /// Throws the error that listening there would cause.
  static func checkIsFree(_ address: SocketAddress, on loop: EventLoop) async throws {
    try await loop.run { try Listener(on: loop, at: address) { $0.close() }.close() }
  }
}
