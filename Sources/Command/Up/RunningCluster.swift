import Glibc
import JSON
import Kafka
import Worker

/// What a running `carillon up` leaves for the tools on the same machine: where its parts are.
///
/// It is the file `up.json` in a folder that only its user can enter: `$XDG_RUNTIME_DIR/carillon`, else `/tmp/carillon-UID`. It is
/// written whole or not at all, and believed only while the process that wrote it lives.
struct RunningCluster: Sendable {
  /// The process that runs it.
  var pid: Int32
  /// When that process began, in the kernel's ticks: tells it from a later one with the same id.
  var began: UInt64
  /// Bootstrap servers of its embedded broker.
  var kafka: String
  /// The address of its Redis, with the password in it.
  var redis: String
  /// Where devices connect, as a URL.
  var devices: String
  /// The root of its admin server, as a URL.
  var admin: String

  /// Of this process.
  init(kafka: String, redis: String, devices: String, admin: String) {
    pid = getpid()
    began = Self.beginning(of: pid) ?? 0
    self.kafka = kafka
    self.redis = redis
    self.devices = devices
    self.admin = admin
  }

  /// How to reach its broker.
  func kafka(client: String) -> KafkaConfiguration {
    KafkaConfiguration(
      bootstrapServers: kafka.split(separator: ",").map(String.init), clientID: client, properties: EmbeddedBroker.clientProperties)
  }

  /// The one that runs on this machine for this user; nil when none does.
  static func find() -> RunningCluster? {
    guard let file, let bytes = try? Descriptor.contents(of: file, limit: 65_536),
      let running = RunningCluster(bytes), running.isAlive
    else { return nil }
    return running
  }

  /// Its file; nil when there is no folder for it.
  static var file: String? { (try? RuntimeFolder.open(creating: false)).map { $0 + "/up.json" } }

  private var isAlive: Bool { Self.beginning(of: pid) == began }

  private init?(_ bytes: [UInt8]) {
    guard let value = bytes.withUnsafeBytes({ try? JSONValue(parsing: $0) }), let pid = value["pid"]?.integerValue,
      let began = value["began"]?.integerValue, let kafka = value["kafka"]?.stringValue, let redis = value["redis"]?.stringValue,
      let devices = value["devices"]?.stringValue, let admin = value["admin"]?.stringValue, let pid = Int32(exactly: pid), began > 0
    else { return nil }
    (self.pid, self.began) = (pid, UInt64(began))
    (self.kafka, self.redis, self.devices, self.admin) = (kafka, redis, devices, admin)
  }

  /// The file's text.
  var text: String {
    JSONValue.object([
      .init(key: "pid", value: .integer(Int64(pid))), .init(key: "began", value: .integer(Int64(began))),
      .init(key: "kafka", value: .string(kafka)), .init(key: "redis", value: .string(redis)),
      .init(key: "devices", value: .string(devices)), .init(key: "admin", value: .string(admin)),
    ]).text + "\n"
  }

  /// When a process began, in ticks since the machine's start; nil when there is none, or it has only its parent left to be told.
  private static func beginning(of pid: Int32) -> UInt64? {
    guard let bytes = try? Descriptor.contents(of: "/proc/\(pid)/stat", limit: 4096) else { return nil }
    // The second field is the name in parentheses, which may have spaces and parentheses in it.
    let fields = String(decoding: bytes, as: UTF8.self).split(separator: ")").last?.split(separator: " ") ?? []
    guard fields.count > 19, fields[0] != "Z" else { return nil }
    return UInt64(fields[19])
  }
}

/// The folder where a running `carillon up` leaves its file.
enum RuntimeFolder {
  /// Its path; made when it is missing.
  ///
  /// A folder that belongs to somebody else, or that others may write to, is refused: what it says would be theirs.
  static func open(creating: Bool) throws(Failure) -> String {
    let runtime = getenv("XDG_RUNTIME_DIR").map { String(cString: $0) } ?? ""
    let parent = runtime.hasPrefix("/") && access(runtime, W_OK | X_OK) == 0 ? runtime : nil
    let path = parent.map { $0 + "/carillon" } ?? "/tmp/carillon-\(getuid())"
    if creating, mkdir(path, 0o700) != 0, errno != EEXIST {
      throw Failure(.wrongUsage, "the folder \(path) cannot be made: \(String(cString: strerror(errno)))")
    }
    var facts = stat()
    guard lstat(path, &facts) == 0 else { throw Failure(.dependencyMissing, "there is no folder \(path)") }
    guard facts.st_mode & S_IFMT == S_IFDIR, facts.st_uid == getuid(), facts.st_mode & 0o077 == 0 else {
      throw Failure(.wrongUsage, "\(path) is not a folder of your own with mode 0700: remove it")
    }
    return path
  }
}

/// The right of one `carillon up` to be the one that the tools find, held from its start to its end.
struct UpClaim: Sendable {
  private let folder: String
  private let lock: Int32

  /// Takes it; nil when another process has it.
  static func take() throws(Failure) -> UpClaim? {
    let folder = try RuntimeFolder.open(creating: true)
    let lock = open(folder + "/up.lock", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard lock >= 0 else { throw Failure(.wrongUsage, "\(folder)/up.lock cannot be opened: \(String(cString: strerror(errno)))") }
    guard flock(lock, LOCK_EX | LOCK_NB) == 0 else {
      close(lock)
      return nil
    }
    return UpClaim(folder: folder, lock: lock)
  }

  private init(folder: String, lock: Int32) {
    self.folder = folder
    self.lock = lock
  }

  /// Tells the tools where everything is.
  func publish(_ running: RunningCluster) throws(Failure) {
    let draft = folder + "/up.json.\(getpid())"
    let file = open(draft, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    guard file >= 0 else { throw Failure(.wrongUsage, "\(draft) cannot be written: \(String(cString: strerror(errno)))") }
    let text = Array(running.text.utf8)
    let count = text.withUnsafeBytes { Descriptor.write($0, to: file) }
    close(file)
    guard count == text.count, rename(draft, folder + "/up.json") == 0 else {
      unlink(draft)
      throw Failure(.wrongUsage, "\(folder)/up.json cannot be written: \(String(cString: strerror(errno)))")
    }
  }

  /// Gives it back, once, and takes the file away. The lock's file stays: without it two processes could hold two locks of one name.
  func release() {
    unlink(folder + "/up.json")
    close(lock)
  }
}
