import EventLoop
import Glibc
import JSON
import Kafka
import Worker

/// The addresses of a running `carillon up`, for the tools on the same machine.
///
/// It is the file `up.json` in a ``RuntimeFolder``. It is written atomically, and valid only while the process that wrote it runs.
struct RunningCluster: Sendable {
  /// The process that runs it.
  var pid = getpid()
  /// When that process began, in the kernel's ticks. It distinguishes a later process with the same id.
  var began = Self.beginning(of: getpid()) ?? 0
  /// The bootstrap servers of its embedded broker.
  var kafka: String
  /// The address of its Redis, with the password.
  var redis: String
  /// The devices' address, as a URL.
  var devices: String
  /// The address of its notification center, as a URL; nil if it serves none.
  var page: String?
  /// The root of its admin server, as a URL.
  var admin: String
  /// Where it takes requests, as a URL; nil if it is of an earlier version.
  var requests: String?

  /// The settings for its broker.
  func kafka(client: String) -> KafkaConfiguration {
    KafkaConfiguration(
      bootstrapServers: kafka.split(separator: ",").map(String.init), clientID: client, properties: EmbeddedBroker.clientProperties)
  }

  /// The running one of this user on this machine; nil if there is none.
  static func find() -> RunningCluster? {
    guard let bytes = folder?.contents(of: fileName, limit: 65_536), let running = RunningCluster(bytes), running.isAlive else {
      return nil
    }
    return running
  }

  /// The path of its file; nil if there is no folder for it.
  static var file: String? { folder.map { "\($0.path)/\(fileName)" } }

  fileprivate static let fileName = "up.json"
  private static var folder: RuntimeFolder? { (try? RuntimeFolder.open(creating: false)) ?? nil }

  private var isAlive: Bool { Self.beginning(of: pid) == began }

  /// The file's text.
  var text: String {
    JSONValue.object([
      "pid": pid, "began": began, "kafka": kafka, "redis": redis, "devices": devices, "page": page, "admin": admin,
      "requests": requests,
    ]).text + "\n"
  }

  /// When a process began, in ticks since the machine's start; nil if it does not exist or has exited already.
  private static func beginning(of pid: Int32) -> UInt64? {
    guard let bytes = try? Descriptor.contents(of: "/proc/\(pid)/stat", limit: 4096) else { return nil }
    // The second field is the name in parentheses, which may contain spaces and parentheses.
    let fields = String(decoding: bytes, as: UTF8.self).split(separator: ")").last?.split(separator: " ") ?? []
    guard fields.count > 19, fields[0] != "Z" else { return nil }
    return UInt64(fields[19])
  }
}

extension RunningCluster {
  /// Reads the file's text; nil if it is another one.
  private init?(_ bytes: [UInt8]) {
    guard let value = bytes.withUnsafeBytes({ try? JSONValue(parsing: $0) }), let pid = value["pid"]?.integerValue,
      let began = value["began"]?.integerValue, let kafka = value["kafka"]?.stringValue, let redis = value["redis"]?.stringValue,
      let devices = value["devices"]?.stringValue, let admin = value["admin"]?.stringValue, let pid = Int32(exactly: pid), began > 0
    else { return nil }
    self.init(
      pid: pid, began: UInt64(began), kafka: kafka, redis: redis, devices: devices, page: value["page"]?.stringValue, admin: admin,
      requests: value["requests"]?.stringValue)
  }
}

/// The right of one `carillon up` to be found by the tools, from its start to its end.
struct UpClaim: Sendable {
  private let folder: RuntimeFolder
  private let lock: Int32

  /// Takes it; nil if another process has it.
  ///
  /// - Throws: why there is no folder for it.
  static func take() throws(Failure) -> UpClaim? {
    guard let folder = try RuntimeFolder.open(creating: true) else { return nil }
    let lock = folder.open("up.lock", O_RDWR | O_CREAT)
    guard lock >= 0 else { throw Failure(.wrongUsage, "\(folder.path)/up.lock cannot be opened: \(String(cString: strerror(errno)))") }
    guard flock(lock, LOCK_EX | LOCK_NB) == 0 else {
      close(lock)
      return nil
    }
    return UpClaim(folder: folder, lock: lock)
  }

  /// Writes the addresses for the tools.
  func publish(_ running: RunningCluster) throws(Failure) {
    func failed(_ name: String) -> Failure {
      Failure(.wrongUsage, "\(folder.path)/\(name) cannot be written: \(String(cString: strerror(errno)))")
    }
    let draft = "\(RunningCluster.fileName).\(getpid())"
    // Nothing else writes here. An existing one is from a process with the same id.
    folder.remove(draft)
    let file = folder.open(draft, O_WRONLY | O_CREAT | O_EXCL)
    guard file >= 0 else { throw failed(draft) }
    let text = Array(running.text.utf8)
    let count = text.withUnsafeBytes { Descriptor.write($0, to: file) }
    close(file)
    guard count == text.count, folder.rename(draft, to: RunningCluster.fileName) else {
      defer { folder.remove(draft) }
      throw failed(RunningCluster.fileName)
    }
  }

  /// Releases it, once, and removes the file. The lock's file stays: otherwise two processes could hold two locks of one name.
  func release() {
    folder.remove(RunningCluster.fileName)
    close(lock)
  }
}
