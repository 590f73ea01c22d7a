public import Redis

extension RedisConnection {
  /// Reads and judges the server's version, role, memory and settings, by three commands. The connection must be up.
  ///
  /// Questions that a managed service forbids are left out with a note.
  ///
  /// - Throws: why the server does not answer; never a finding.
  public func checkServer() async throws(RedisError) -> ServerState {
    var report = ServerState(address: "\(configuration.address)")
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
    report.policy = (facts["maxmemory_policy"] ?? settings["maxmemory-policy"]).map(String.init)
    report.tell(facts, settings)
    report.judge(facts, settings)
    return report
  }

  private func settings(_ report: inout ServerState) async throws(RedisError) -> [Substring: Substring] {
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
    _ arguments: RedisArgument..., or name: String, _ report: inout ServerState
  ) async throws(RedisError) -> RedisValue? {
    do {
      return try await command(arguments)
    } catch {
      guard error.code == .noPermission || error.code == .rejected else { throw error }
      let text = "\(name) is not allowed here, so what it would tell was not checked"
      if report.findings[.note]?.contains(text) != true { report.find(.note, text) }
      return nil
    }
  }
}

extension ServerState {
  fileprivate mutating func find(_ severity: Severity, _ text: String) { findings[severity, default: []].append(text) }

  fileprivate mutating func tell(_ facts: [Substring: Substring], _ settings: [Substring: Substring]) {
    func number(_ name: Substring) -> Int64? { facts[name].flatMap { Int64($0) } }
    usedMemory = number("used_memory")
    maximumMemory = number("maxmemory") ?? settings["maxmemory"].flatMap { Int64($0) }
    // Limits an impossible count, so that arithmetic with it is safe.
    evictedKeys = number("evicted_keys").map { min(max(0, $0), 1 << 53) }
    isPrimary = facts["role"].flatMap { $0 == "master" ? true : $0 == "slave" ? false : nil }
    replicas = facts["connected_slaves"].flatMap { Int($0) }
    guard let enabled = number("aof_enabled") else { return }
    (appendsWrites, synchronization) = (enabled == 1, settings["appendfsync"].map(String.init))
    isSaved = facts["aof_last_write_status"] != "err" && facts["rdb_last_bgsave_status"] != "err"
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
    if let policy, policy != "noeviction" {
      find(.error, "maxmemory-policy is \(policy): Redis would throw notifications away; set it to noeviction")
    }
    if policy == nil { find(.note, "maxmemory-policy is not told; make sure that it is noeviction") }
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
