import Cryptography
public import EventLoop
import Glibc

/// A private `redis-server` as a child process, for a cluster on one machine and for tests.
///
/// It has no persistence. Its temporary folder is removed with it, or after a kill by the next server. It listens on a Unix socket or a
/// free port of the loopback interface, optionally with a password. It ends with its loop or its parent if the system supports that
/// (`setpriv`), else by `stop`.
public actor PrivateServer: LoopActor {
  /// The address to listen on.
  public enum Listening: Sendable, Hashable {
    /// On a Unix socket in its temporary folder.
    case unixSocket
    /// A port of 127.0.0.1; nil takes a free one.
    case port(Int?)
  }

  /// The actor's loop.
  public nonisolated let loop: EventLoop
  /// Its address, which stays the same after `kill` and `launch`.
  public nonisolated let address: RedisAddress

  private let program: String
  private let folder: TemporaryFolder
  private let settings: [String]
  private var run: Run?

  /// One run of the process.
  private final class Run {
    var child: ChildProcess?
    var exit: ChildExit?
    var connection: RedisConnection?
    let ended: LoopWaiters

    init(on loop: EventLoop) { ended = LoopWaiters(on: loop) }
  }

  private init(_ loop: EventLoop, _ program: String, _ address: RedisAddress, _ folder: TemporaryFolder, _ settings: [String]) {
    self.loop = loop
    self.program = program
    self.address = address
    self.folder = folder
    self.settings = settings
  }

  /// Starts a server and waits until it takes commands.
  ///
  /// - Parameters:
  ///   - hasPassword: whether it needs a password. Each server gets a new one, which is in its `address` and in no process list.
  ///   - settings: further settings, each as the words of a command-line option: `["--appendonly", "yes"]`. They override the default ones.
  ///   - deadlineMilliseconds: how long the start may take.
  /// - Throws: `serverMissing` with what to install, `serverFailed` with the end of the server's log.
  public static func start(
    on loop: EventLoop, listening: Listening = .port(nil), hasPassword: Bool = false, settings: [String] = [],
    deadlineMilliseconds: Int = 10000
  ) async throws(RedisError) -> PrivateServer {
    guard let program = find("redis-server") ?? find("valkey-server") else {
      throw RedisError(
        .serverMissing, "no redis-server is installed; install it (apt-get install redis-server), or name a running Redis with --redis")
    }
    var failure = RedisError(.serverFailed, "redis-server did not start")
    // Another process may take the free port before the server does.
    for _ in 0..<5 {
      let folder = try TemporaryFolder()
      var address: RedisAddress
      switch listening {
      case .unixSocket: address = RedisAddress(.unix(path: folder.path + "/redis.sock"))
      case .port(let port):
        guard let port = port ?? freePort() else { throw RedisError(.serverFailed, "no free port for redis-server") }
        address = RedisAddress(.tcp(host: "127.0.0.1", port: port))
      }
      if hasPassword { address.password = RandomBytes.make(count: 24).withUnsafeBytes { Base64.encode(url: $0) } }
      let server = PrivateServer(loop, program, address, folder, settings)
      do {
        try await server.launch(deadlineMilliseconds: deadlineMilliseconds)
        return server
      } catch {
        await server.stop()
        failure = error
        guard listening == .port(nil), error.message.contains("Address already in use") else { break }
      }
    }
    throw failure
  }

  /// The process id; nil while it is not running.
  public var pid: Int32? { run?.child?.pid }

  /// Starts the process again after `kill` at the same address, and waits until it takes commands.
  public func launch(deadlineMilliseconds: Int = 10000) async throws(RedisError) {
    guard run == nil else { return }
    let run = Run(on: loop)
    do {
      run.child = try spawn(run)
    } catch {
      throw RedisError(.serverFailed, "redis-server cannot be started: \(error)")
    }
    self.run = run
    let backoff = Backoff(firstMilliseconds: 5, longestMilliseconds: 20)
    var configuration = RedisConfiguration(address, clientName: "carillon-start", backoff: backoff)
    configuration.callDeadlineMilliseconds = max(configuration.callDeadlineMilliseconds, deadlineMilliseconds)
    let connection = RedisConnection(on: loop, configuration)
    run.connection = connection
    connection.start()
    defer {
      connection.close()
      run.connection = nil
    }
    let isOurs: Bool
    do throws(RedisError) {
      try await connection.waitUntilUp(withinMilliseconds: deadlineMilliseconds)
      let pid = run.child?.pid ?? 0
      isOurs = try await connection.command("INFO", "server").text?.contains("process_id:\(pid)\r\n") == true
    } catch {
      // Something else than a Redis listens there.
      if error.code == .protocolViolation { throw Self.otherServer }
      // It answers, but asks for a password that is among the settings. A server of this call knows its own password.
      if error.code == .authenticationFailed {
        if address.password == nil { return }
        throw Self.otherServer
      }
      let reason = run.exit == nil ? "it does not answer (\(error))" : "it ended"
      throw RedisError(.serverFailed, "redis-server did not start, \(reason). Its log ends: \(logTail())")
    }
    if !isOurs { throw Self.otherServer }
  }

  /// Two processes that look for a free port at the same time may find the other's server there.
  private static let otherServer = RedisError(
    .serverFailed, "redis-server did not start: Address already in use, by another program")

  /// Kills the process, as `kill -9` does, and waits for its end. Its folder stays for `launch`.
  public func kill() async {
    guard let run else { return }
    run.child?.kill(SIGKILL)
    await run.ended.wait { run.exit != nil }
    self.run = nil
  }

  /// Sends a signal to the process, such as `SIGSTOP` and `SIGCONT`.
  public func signal(_ number: Int32) { run?.child?.kill(number) }

  /// Ends the process and removes its folder.
  public func stop() async {
    // It has nothing to save, so an orderly stop gains nothing.
    await kill()
    folder.remove()
  }

  /// Half of the machine's memory, in bytes.
  private static var maximumMemory: Int { max(64 << 20, sysconf(Int32(_SC_PHYS_PAGES)) / 2 * sysconf(Int32(_SC_PAGESIZE))) }

  private func spawn(_ run: Run) throws(EventLoopError) -> ChildProcess {
    var arguments = ["--daemonize", "no", "--dir", folder.path]
    switch address.endpoint {
    case .unix(let path): arguments += ["--port", "0", "--unixsocket", path, "--unixsocketperm", "700"]
    case .tcp(_, let port): arguments += ["--port", "\(port)", "--bind", "127.0.0.1"]
    }
    // Every version understands the older name of `hash-max-listpack-value`.
    arguments += ["--save", "", "--appendonly", "no", "--maxmemory-policy", "noeviction", "--hash-max-ziplist-value", "1024"]
    arguments += ["--maxmemory", "\(Self.maximumMemory)"]
    arguments += settings
    if let password = address.password { arguments.insert(try privateConfiguration("requirepass \(password)\n"), at: 0) }
    let environment = ["PATH=/usr/local/bin:/usr/bin:/bin"]
    // A log file from outside, because the server reports wrong settings before it opens its own log.
    let log = open(logPath, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
    defer { if log >= 0 { close(log) } }
    return try ChildProcess.spawn(
      on: loop, executable: program, arguments: arguments, environment: environment, output: log < 0 ? .discarded : .descriptor(log),
      endsWithParent: true
    ) { exit in
      run.exit = exit
      run.connection?.close()
      run.ended.look()
    }
  }

  // MARK: Files

  /// Writes secret settings to a file, since everybody can read a command line; answers the file's path.
  private func privateConfiguration(_ text: String) throws(EventLoopError) -> String {
    let path = folder.path + "/private.conf"
    let file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    let isWritten = file >= 0 && write(file, text, text.utf8.count) == text.utf8.count
    let reason = String(cString: strerror(errno))
    if file >= 0 { close(file) }
    guard isWritten else { throw EventLoopError(code: .other, operation: "write \(path)", message: reason) }
    return path
  }

  private var logPath: String { folder.path + "/redis.log" }

  private func logTail() -> String {
    guard let file = fopen(logPath, "r") else { return "(there is none)" }
    defer { fclose(file) }
    fseek(file, -2000, SEEK_END)
    var bytes = [UInt8](repeating: 0, count: 2000)
    let count = fread(&bytes, 1, bytes.count, file)
    let lines = String(decoding: bytes.prefix(count), as: UTF8.self).split(separator: "\n")
    return lines.suffix(5).joined(separator: " / ")
  }

  private static func find(_ program: String) -> String? {
    let path = getenv("PATH").map { String(cString: $0) } ?? "/usr/local/bin:/usr/bin:/bin"
    return path.split(separator: ":").map { "\($0)/\(program)" }.first { access($0, X_OK) == 0 }
  }

  private static func freePort() -> Int? {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let found = withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, size) == 0 && getsockname(descriptor, $0, &size) == 0 }
    }
    return found ? Int(UInt16(bigEndian: address.sin_port)) : nil
  }
}
