public import EventLoop
import Foundation
import Glibc
public import JSON
import Kafka
import Redis

/// Which Kafka a cluster of processes runs on.
public enum ClusterKafka: String, Sendable, CaseIterable {
  /// A broker in the test's own process.
  case embedded
  /// The one that `TESTS_KAFKA` names.
  case real

  /// Those that are there.
  public static var available: [ClusterKafka] { KafkaFixture.realServers == nil ? [.embedded] : [.embedded, .real] }
}

/// What goes wrong around the test: its text says what, and shows the ends of the logs.
public struct ClusterFailure: Error, CustomStringConvertible {
  /// What happened.
  public var description: String

  /// A failure with this text.
  public init(_ description: String) { self.description = description }
}

/// A cluster for one test: `carillon` processes on a Kafka with topics of their own and a private Redis.
///
/// Whatever it started is ended with it. When the test's body throws, the tails of all logs are printed.
public actor ClusterFixture: LoopActor {
  /// The loop that watches the processes.
  public nonisolated let loop: EventLoop
  /// The bootstrap servers.
  public nonisolated let kafka: String
  /// What the topics' names begin with.
  public nonisolated let prefix: String
  /// The address of its Redis.
  public nonisolated let redis: String
  private let redisFlags: [String]
  private let isEmbedded: Bool
  private let folder: String
  private var processes: [ClusterProcess] = []

  /// The Python that runs the clients of the tests; nil without one.
  public static let python: String? = getenv("TESTS_PYTHON").map { String(cString: $0) }
  /// The folder of the Kafka that `Deploy/kafka` starts brokers from: `TESTS_KAFKA_FOLDER`, else ../shared/kafka beside the clone; nil
  /// without one.
  public static let kafkaFolder: String? = {
    let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../..")
    let folder = getenv("TESTS_KAFKA_FOLDER").map { String(cString: $0) } ?? root.appendingPathComponent("../shared/kafka").path
    return ["kafka", "bin/kafka-server-start.sh"].contains { FileManager.default.isExecutableFile(atPath: "\(folder)/\($0)") }
      ? folder : nil
  }()
  private static let topics = ["requests", "deliveries", "devices", "events", "dead-letters", "applications"]

  private init(kafka: String, redis: String, _ redisFlags: [String], isEmbedded: Bool) throws {
    self.kafka = kafka
    self.isEmbedded = isEmbedded
    self.redis = redis
    self.redisFlags = redisFlags
    prefix = KafkaFixture.unique("cluster") + "."
    folder = try TemporaryFolder.make()
    loop = EventLoop(name: "cluster")
  }

  /// Gives `body` a cluster with topics and without workers, and ends all that runs afterwards.
  ///
  /// - Parameters:
  ///   - isForLoad: whether it is marked as one for load.
  ///   - redisOverTLS: whether its workers connect to Redis over TLS.
  public static func with<R: Sendable>(
    _ broker: ClusterKafka, partitions: Int32 = 4, isForLoad: Bool = false, redisOverTLS: Bool = false,
    _ body: @Sendable (ClusterFixture) async throws -> R
  ) async throws -> R {
    try await KafkaFixture.with(embeddedOnly: broker == .embedded) { kafka in
      func run(_ redis: RedisAddress, _ redisFlags: [String]) async throws -> R {
        let servers = kafka.configuration.bootstrapServers.joined(separator: ",")
        print("this cluster runs on \(broker == .real ? "the real Kafka" : "an embedded broker") at \(servers)")
        let cluster = try ClusterFixture(kafka: servers, redis: redis.description, redisFlags, isEmbedded: kafka.embedded != nil)
        do {
          if let embedded = kafka.embedded {
            if isForLoad { try embedded.createTopic(cluster.prefix + "load", partitions: 1) }
            for topic in topics { try embedded.createTopic(cluster.prefix + topic, partitions: partitions) }
          }
          try await cluster.createTopics(partitions, isForLoad: isForLoad)
          let result = try await body(cluster)
          await cluster.end()
          await cluster.loop.close()
          return result
        } catch {
          await print("\(error)\n\(cluster.logs())")
          await cluster.end()
          await cluster.loop.close()
          throw error
        }
      }
      guard redisOverTLS else { return try await withRedis { try await run($0.address, []) } }
      return try await withSecureRedis { _, secure, folder in try await run(secure, ["--redis-ca", "\(folder.path)/ca.pem"]) }
    }
  }

  private func createTopics(_ partitions: Int32, isForLoad: Bool) async throws {
    let process = try await start(
      "topics", carillon(),
      ["topics", "create", "--kafka", kafka, "--topic-prefix", prefix, "--partitions", "\(partitions)", "--json"]
        + (isForLoad ? ["--for-load"] : []))
    let exit = try await process.exit()
    guard exit == .exited(0) else { throw ClusterFailure("topics create ended with \(exit)") }
  }

  /// Starts a transform worker, and answers when it is ready.
  @discardableResult
  public func transform(_ flags: [String] = []) async throws -> ClusterProcess {
    let poll = isEmbedded && !flags.contains("--session-timeout") ? KafkaFixture.embeddedPoll : []
    return try await worker("transform", ["--group", prefix + "transform"] + poll + flags)
  }

  /// Starts a fan-out worker, and answers when it is ready.
  @discardableResult
  public func fanOut(_ flags: [String] = []) async throws -> ClusterProcess {
    try await worker("fan-out", (flags.contains("--listen") ? [] : ["--listen", "127.0.0.1:0"]) + flags)
  }

  private func worker(_ role: String, _ flags: [String]) async throws -> ClusterProcess {
    let process = try await start(
      "\(role)-\(processes.count)", carillon(),
      [role, "--json", "--kafka", kafka, "--redis", redis, "--topic-prefix", prefix, "--admin", "127.0.0.1:0"] + redisFlags + flags)
    try await process.line("is ready") { $0["admin"] != nil }
    return process
  }

  /// Starts a program of the Python that `TESTS_PYTHON` names, with the cluster's Kafka and prefix as its first arguments.
  public func client(_ script: String, _ arguments: [String]) async throws -> ClusterProcess {
    try await program(script, ["--kafka", kafka, "--prefix", prefix] + arguments)
  }

  /// Starts a program of the Python that `TESTS_PYTHON` names; nothing is added to its arguments.
  public func program(_ script: String, _ arguments: [String]) async throws -> ClusterProcess {
    guard let python = Self.python else { throw ClusterFailure("TESTS_PYTHON names no Python") }
    let name = script.split(separator: "/").last.map(String.init) ?? script
    return try await start("\(name)-\(processes.count)", python, ["-u", script] + arguments)
  }

  /// Starts a tool of the program with these arguments, the first of which is its name; nothing is added to them.
  public func tool(_ arguments: [String]) async throws -> ClusterProcess {
    try await start("\(arguments.first ?? "tool")-\(processes.count)", carillon(), arguments)
  }

  private func start(_ name: String, _ program: String, _ arguments: [String]) async throws -> ClusterProcess {
    let process = ClusterProcess(loop, name: name, log: "\(folder)/\(name).log")
    processes.append(process)
    try await process.launch(program, arguments)
    return process
  }

  /// The ends of all logs.
  public func logs(lines: Int = 30) -> String {
    processes.map { "── \($0.name)\n" + $0.text.split(separator: "\n").suffix(lines).joined(separator: "\n") }.joined(separator: "\n")
  }

  /// Ends all processes; the loop is closed by its caller, who does not run on it.
  private func end() async {
    for process in processes { await process.kill() }
    processes = []
    TemporaryFolder.remove(folder)
  }

  /// The binary under test: `TESTS_BINARY`, else the one that was built beside the tests.
  public func carillon() throws -> String {
    if let given = getenv("TESTS_BINARY") { return String(cString: given) }
    var path = [CChar](repeating: 0, count: Int(PATH_MAX))
    let count = readlink("/proc/self/exe", &path, path.count)
    let bundle = String(decoding: path.prefix(max(0, count)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    let beside = bundle.split(separator: "/").dropLast().map { "/" + $0 }.joined() + "/carillon"
    guard access(beside, X_OK) == 0 else { throw ClusterFailure("there is no \(beside); build it, or name one with TESTS_BINARY") }
    return beside
  }
}

/// A process of a cluster: a worker, a tool or a client. Its standard output and error go to one log.
public actor ClusterProcess: LoopActor {
  /// The loop that watches it.
  public nonisolated let loop: EventLoop
  /// What the log is called after.
  public nonisolated let name: String
  private nonisolated let log: String
  private var child: ChildProcess?
  private var ended: ChildExit?

  fileprivate init(_ loop: EventLoop, name: String, log: String) { (self.loop, self.name, self.log) = (loop, name, log) }

  fileprivate func launch(_ program: String, _ arguments: [String]) throws {
    let descriptor = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw ClusterFailure("cannot write \(log)") }
    defer { close(descriptor) }
    // It must not outlive a test process that is killed; a parent's thread counts as the parent, and the loop's lives long enough.
    child = try ChildProcess.spawn(
      on: loop, executable: program, arguments: arguments, output: .descriptor(descriptor), endsWithParent: true
    ) { [self] exit in assumeIsolated { $0.ended = exit } }
  }

  /// All that it has written.
  public nonisolated var text: String {
    guard let file = fopen(log, "r") else { return "" }
    defer { fclose(file) }
    var (bytes, chunk) = ([UInt8](), [UInt8](repeating: 0, count: 65_536))
    while case let count = fread(&chunk, 1, chunk.count, file), count > 0 { bytes += chunk[..<count] }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// The objects among its lines.
  public nonisolated var lines: [JSONValue] {
    text.split(separator: "\n").filter { $0.hasPrefix("{") }.compactMap { try? JSONValue(parsing: String($0)) }
  }

  /// Waits for a line that is an object and passes `accepts`.
  @discardableResult
  public func line(_ what: String, _ accepts: @Sendable (JSONValue) -> Bool) async throws -> JSONValue {
    var found: JSONValue?
    var read: Int?
    try await requireEventually("\(name) \(what)") {
      let (hasEnded, size) = (ended, size)
      // Reading all of it costs more than asking whether there is more.
      if size != read { found = lines.first(where: accepts) }
      read = size
      if let hasEnded, found == nil { throw ClusterFailure("\(name) ended (\(hasEnded)) before it \(what)") }
      return found != nil
    }
    return found ?? .null
  }

  /// The bytes that it has written.
  private nonisolated var size: Int {
    var status = stat()
    return stat(log, &status) == 0 ? Int(status.st_size) : 0
  }

  /// Where devices connect to this fan-out worker.
  public nonisolated var devices: String { lines.lazy.compactMap { $0["devices"]?.stringValue }.first ?? "" }

  /// Waits for its end.
  ///
  /// - Parameter hangs: the number of deadlines to wait, for a process that does so many things which may hang.
  public func exit(hangs: Int = 1) async throws -> ChildExit {
    try await requireEventually("\(name) ends", hangs: hangs) { ended != nil }
    return ended ?? .exited(-1)
  }

  /// Sends it a signal.
  public func signal(_ number: Int32) { if ended == nil { child?.kill(number) } }

  /// Ends it as `kill -9` does, and answers when it has gone.
  public func kill() async {
    if ended == nil { child?.kill(SIGKILL) }
    _ = try? await exit()
  }
}

private enum TemporaryFolder {
  static func make() throws -> String {
    let parent = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
    var name = Array("\(parent)/carillon-cluster-XXXXXX".utf8CString)
    guard mkdtemp(&name) != nil else { throw ClusterFailure("cannot make a folder in \(parent)") }
    return String(decoding: name.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  /// Removes it with the files in it.
  static func remove(_ path: String) {
    if let folder = opendir(path) {
      while let entry = readdir(folder) {
        let name = withUnsafePointer(to: &entry.pointee.d_name) {
          String(cString: UnsafeRawPointer($0).assumingMemoryBound(to: CChar.self))
        }
        unlink(path + "/" + name)
      }
      closedir(folder)
    }
    rmdir(path)
  }
}
