/// A Redis server's report of itself, and whether it is suitable.
public struct RedisServerReport: Sendable {
  /// The severity of a finding.
  public enum Severity: Sendable, Hashable {
    /// A guarantee cannot be kept: do not start.
    case error
    /// It cannot be used now, but that may change by itself: ask again.
    case passing
    /// It works, but worse than it could.
    case warning
    /// Something could not be checked.
    case note
  }

  /// One finding.
  public struct Finding: Sendable, Hashable, CustomStringConvertible {
    /// Its severity.
    public var severity: Severity
    /// The finding, and what to do.
    public var text: String
    /// The text.
    public var description: String { text }
  }

  /// The version, for example `7.0.15`; nil if unknown.
  public internal(set) var version: String?
  /// `maxmemory-policy`; nil if unknown.
  public internal(set) var maximumMemoryPolicy: String?
  /// Bytes of its data and buffers; nil if unknown.
  public internal(set) var usedMemory: Int64?
  /// `maxmemory` in bytes: 0 if it has no limit, nil if unknown.
  public internal(set) var maximumMemory: Int64?
  /// Keys evicted for lack of memory since its start; nil if unknown.
  public internal(set) var evictedKeys: Int64?
  /// Whether it is a primary or a replica; nil if unknown.
  public internal(set) var role: Role?
  /// Its connected replicas; nil if unknown.
  public internal(set) var replicas: Int?
  /// Its persistence; nil if unknown.
  public internal(set) var persistence: Persistence?
  /// The server's `run_id`. Another one is another process, which may have other data.
  public internal(set) var runIdentifier: String?
  /// The role of a server.
  public enum Role: String, Sendable, Hashable {
    /// It takes writes.
    case primary = "master"
    /// It replicates a primary.
    case replica = "slave"
  }

  /// A server's persistence, and whether it succeeded the last time.
  public struct Persistence: Sendable, Hashable {
    /// Whether each write is appended to a file (AOF).
    public var appendsWrites: Bool
    /// How often that file is synchronized: `everysec`, `always` or `no`; nil if unknown.
    public var synchronization: String?
    /// Whether the last write to that file succeeded; true if there is none.
    public var appended: Bool
    /// Whether the last snapshot (RDB) succeeded; true if there was none.
    public var saved: Bool
  }

  /// All findings, in the order of the checks.
  public internal(set) var findings: [Finding] = []

  /// Whether no finding is an error.
  public var isAcceptable: Bool { firstError == nil }

  /// The first error, to throw; nil if there is none.
  public var firstError: RedisError? {
    findings.first { $0.severity == .error }.map { RedisError(.unsuitableServer, $0.text) }
  }

  /// Why the server cannot be used yet; nil if it can.
  public var passing: String? { findings.first { $0.severity == .passing }?.text }

  mutating func find(_ severity: Severity, _ text: String) { findings.append(Finding(severity: severity, text: text)) }
}

extension RedisConnection {
  /// Reads and judges the server's version, role, memory and settings, by three commands. The connection must be up.
  ///
  /// Questions that a managed service forbids are left out with a note.
  ///
  /// - Throws: why the server does not answer; never a finding.
  public func checkServer() async throws(RedisError) -> RedisServerReport {
    var report = RedisServerReport()
    var facts: [Substring: Substring] = [:]
    // Without a section INFO answers everything that is needed. Several sections in one call need Redis 7.
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
    // One pattern in a call, since several need Redis 7.
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
    // Limits an impossible count, so that arithmetic with it is safe.
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
