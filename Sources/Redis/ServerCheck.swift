/// What a Redis server says of itself, and whether it can be worked with.
public struct RedisServerReport: Sendable {
  /// How much a finding matters.
  public enum Severity: Sendable, Hashable {
    /// A guarantee cannot be kept: do not start.
    case error
    /// It cannot be worked with now, and may change by itself: ask again.
    case passing
    /// It works, but worse than it could.
    case warning
    /// Something could not be checked.
    case note
  }

  /// One thing found.
  public struct Finding: Sendable, Hashable, CustomStringConvertible {
    /// How much it matters.
    public var severity: Severity
    /// What it is and what to do.
    public var text: String
    /// The text.
    public var description: String { text }
  }

  /// As the server says it, for example `7.0.15`; nil when it does not.
  public internal(set) var version: String?
  /// `maxmemory-policy`; nil when the server does not say.
  public internal(set) var maximumMemoryPolicy: String?
  /// Bytes that its data and buffers take; nil when the server does not say.
  public internal(set) var usedMemory: Int64?
  /// `maxmemory` in bytes: 0 where the server sets itself no bound; nil when it does not say.
  public internal(set) var maximumMemory: Int64?
  /// Keys that it has thrown away for want of memory since it was started; nil when it does not say.
  public internal(set) var evictedKeys: Int64?
  /// Whether it is a primary, or a replica of one; nil when it does not say.
  public internal(set) var role: Role?
  /// Replicas that are connected to it; nil when it does not say.
  public internal(set) var replicas: Int?
  /// What it keeps on disk; nil when it does not say.
  public internal(set) var persistence: Persistence?
  /// The server's `run_id`: another one is another process, whose memory may be another.
  public internal(set) var runIdentifier: String?
  /// What a server is to others.
  public enum Role: String, Sendable, Hashable {
    /// It takes writes.
    case primary = "master"
    /// It follows a primary.
    case replica = "slave"
  }

  /// What a server keeps on disk, and whether that went well the last time.
  public struct Persistence: Sendable, Hashable {
    /// Whether each write is appended to a file (AOF).
    public var appendsWrites: Bool
    /// How often that file is synchronized: `everysec`, `always` or `no`; nil when the server does not say.
    public var synchronization: String?
    /// Whether the last write to that file went well; true where there is none.
    public var appended: Bool
    /// Whether the last snapshot (RDB) was written; true where there was none.
    public var saved: Bool

    /// What is kept, of its parts.
    public init(appendsWrites: Bool, synchronization: String?, appended: Bool, saved: Bool) {
      (self.appendsWrites, self.synchronization, self.appended, self.saved) = (appendsWrites, synchronization, appended, saved)
    }
  }

  /// Everything found, in the order of the checks.
  public internal(set) var findings: [Finding] = []

  /// Whether nothing found is an error.
  public var isAcceptable: Bool { firstError == nil }

  /// The first error as one to throw; nil when there is none.
  public var firstError: RedisError? {
    findings.first { $0.severity == .error }.map { RedisError(.unsuitableServer, $0.text) }
  }

  /// What is to pass before the server can be worked with; nil when nothing is.
  public var passing: String? { findings.first { $0.severity == .passing }?.text }

  mutating func find(_ severity: Severity, _ text: String) { findings.append(Finding(severity: severity, text: text)) }
}

extension RedisConnection {
  /// Asks the server for its version, role, memory and settings, and judges them: three commands, when the connection is up.
  ///
  /// What a managed service does not let be asked is left out with a note.
  ///
  /// - Throws: what keeps the server from answering; never what was found.
  public func checkServer() async throws(RedisError) -> RedisServerReport {
    var report = RedisServerReport()
    var facts: [Substring: Substring] = [:]
    // Without a section it tells all that is needed, which several sections in one call do only since Redis 7.
    if let text = try await allowed("INFO", or: "INFO", &report)?.text {
      for line in text.split(whereSeparator: \.isNewline) {
        if let colon = line.firstIndex(of: ":") { facts[line[..<colon]] = line[line.index(after: colon)...] }
      }
    }
    let settings = try await settings(&report)
    report.version = facts["redis_version"].map(String.init)
    report.runIdentifier = facts["run_id"].map(String.init)
    report.maximumMemoryPolicy = (facts["maxmemory_policy"] ?? settings["maxmemory-policy"]).map(String.init)
    report.tell(facts, settings)
    report.judge(facts, settings)
    return report
  }

  private func settings(_ report: inout RedisServerReport) async throws(RedisError) -> [Substring: Substring] {
    var settings: [Substring: Substring] = [:]
    // One pattern to a call, since several are taken only since Redis 7.
    for pattern: RedisArgument in ["*max*", "appendfsync"] {
      guard let pairs = try await allowed("CONFIG", "GET", pattern, or: "CONFIG GET", &report)?.array else { break }
      for index in stride(from: 0, to: pairs.count - 1, by: 2) {
        if let name = pairs[index].text, let value = pairs[index + 1].text { settings[name[...]] = value[...] }
      }
    }
    return settings
  }

  private func allowed(
    _ arguments: RedisArgument..., or name: String, _ report: inout RedisServerReport
  ) async throws(RedisError) -> RedisValue? {
    do {
      return try await command(arguments)
    } catch {
      guard error.code == .noPermission || error.code == .rejected else { throw error }
      let text = "\(name) is not allowed here, so what it would tell was not checked"
      if !report.findings.contains(where: { $0.text == text }) { report.find(.note, text) }
      return nil
    }
  }
}

extension RedisServerReport {
  fileprivate mutating func tell(_ facts: [Substring: Substring], _ settings: [Substring: Substring]) {
    func number(_ name: Substring) -> Int64? { facts[name].flatMap { Int64($0) } }
    usedMemory = number("used_memory")
    maximumMemory = number("maxmemory") ?? settings["maxmemory"].flatMap { Int64($0) }
    // A count that no server comes to is none that can be reckoned with.
    evictedKeys = number("evicted_keys").map { min(max(0, $0), 1 << 53) }
    role = facts["role"].flatMap { Role(rawValue: String($0)) }
    replicas = facts["connected_slaves"].flatMap { Int($0) }
    persistence = number("aof_enabled").map { enabled in
      Persistence(
        appendsWrites: enabled == 1, synchronization: settings["appendfsync"].map(String.init),
        appended: facts["aof_last_write_status"] != "err", saved: facts["rdb_last_bgsave_status"] != "err")
    }
  }

  fileprivate mutating func judge(_ facts: [Substring: Substring], _ settings: [Substring: Substring]) {
    if let version {
      let numbers = version.split(separator: ".").prefix(2).map { Int($0) ?? 0 }
      if numbers.lexicographicallyPrecedes([6, 2]) { find(.error, "Redis \(version) is too old; 6.2 or newer is needed") }
    }
    if facts["cluster_enabled"] == "1" || facts["redis_mode"] == "cluster" {
      find(.error, "the server is a node of a Redis Cluster, which is not in this version; use a single Redis")
    }
    if facts["redis_mode"] == "sentinel" { find(.error, "the server is a Sentinel; give the address of the Redis that it watches") }
    if facts["role"] == "slave" {
      find(.passing, "the server is a replica and takes no writes: it has to be made the primary, or the primary's address be given")
    }
    if let policy = maximumMemoryPolicy, policy != "noeviction" {
      find(.error, "maxmemory-policy is \(policy): Redis would throw notifications away; set it to noeviction")
    }
    if maximumMemoryPolicy == nil { find(.note, "maxmemory-policy is not told; make sure that it is noeviction") }
    if maximumMemory == 0 {
      find(
        .warning,
        "there is no maxmemory: it may take memory until the system kills it; set maxmemory well below what the machine has, so that it refuses writes in time, and loses nothing"
      )
    }
    let packed = settings["hash-max-listpack-value"] ?? settings["hash-max-ziplist-value"]
    if let packed, let size = Int(packed), size < 1024 {
      find(.warning, "hash-max-listpack-value is \(size): set it to 1024, or devices take twice the memory")
    }
  }
}
