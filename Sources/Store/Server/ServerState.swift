import Redis

/// What a Redis server reports of itself, and whether workers may rely on it.
public struct ServerState: Sendable, Hashable {
  /// The server, without its password.
  public var address: String
  /// Identifies the server's process. Another process has other data and counts; nil if unknown, as for all that follows.
  public var runIdentifier: String?
  /// For example `7.0.15`.
  public var version: String?
  /// Whether it takes writes and is not a replica.
  public var isPrimary: Bool?
  /// Its connected replicas.
  public var replicas: Int?
  /// Bytes of its data and buffers.
  public var usedMemory: Int64?
  /// `maxmemory` in bytes; 0 if it has no limit.
  public var maximumMemory: Int64?
  /// `maxmemory-policy`.
  public var policy: String?
  /// Keys evicted for lack of memory since the server started.
  public var evictedKeys: Int64?
  /// Whether each write is appended to a file (AOF).
  public var appendsWrites: Bool?
  /// How often that file is synchronized: `everysec`, `always` or `no`.
  public var synchronization: String?
  /// Whether the last write of its data to disk succeeded.
  public var isSaved: Bool?
  /// Why workers must not rely on it, and what to change; nil if there is no known objection.
  public var objection: String?
  /// Why workers cannot use it, for good or for now.
  public var errors: [String] = []
  /// What could be better, and what could not be read.
  public var remarks: [String] = []

  /// A server before its first report.
  public init(address: String) { self.address = address }

  init(_ report: RedisServerReport, address: String) {
    self.init(address: address)
    (runIdentifier, objection) = (report.runIdentifier, report.firstError?.message ?? report.passing)
    (version, policy, replicas) = (report.version, report.maximumMemoryPolicy, report.replicas)
    isPrimary = report.role.map { $0 == .primary }
    (usedMemory, maximumMemory, evictedKeys) = (report.usedMemory, report.maximumMemory, report.evictedKeys)
    appendsWrites = report.persistence?.appendsWrites
    synchronization = report.persistence?.synchronization
    isSaved = report.persistence.map { $0.appended && $0.saved }
    for finding in report.findings {
      switch finding.severity {
      case .error, .passing: errors.append(finding.text)
      case .warning, .note: remarks.append(finding.text)
      }
    }
  }
}

extension Shards {
  /// Reads the server's state, by three commands.
  public func serverState() async throws(StoreError) -> ServerState {
    do throws(RedisError) {
      return ServerState(try await common.checkServer(), address: "\(common.configuration.address)")
    } catch {
      throw StoreError(error)
    }
  }
}
