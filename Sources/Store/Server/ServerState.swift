import Redis

/// What the Redis server of a cluster says of itself: whether workers may rely on it, and how it is.
public struct ServerState: Sendable, Hashable {
  /// The server, without its password.
  public var address: String
  /// The server's process: another one has another memory, and other counts; nil where it does not say, as all that follows.
  public var runIdentifier: String?
  /// For example `7.0.15`.
  public var version: String?
  /// Whether it takes writes, and does not follow another.
  public var isPrimary: Bool?
  /// Replicas that are connected to it.
  public var replicas: Int?
  /// Bytes that its data and buffers take.
  public var usedMemory: Int64?
  /// `maxmemory` in bytes; 0 where it sets itself no bound.
  public var maximumMemory: Int64?
  /// `maxmemory-policy`.
  public var policy: String?
  /// Keys that it has thrown away for want of memory since it was started.
  public var evictedKeys: Int64?
  /// Whether each write is appended to a file (AOF).
  public var appendsWrites: Bool?
  /// How often that file is synchronized: `everysec`, `always` or `no`.
  public var synchronization: String?
  /// Whether what it keeps on disk was written the last time.
  public var isSaved: Bool?
  /// Why it must not be relied on until that has changed, and what to change; nil where nothing is known that speaks against it.
  public var objection: String?
  /// Why it cannot be worked with, for good or for now.
  public var errors: [String] = []
  /// What could be better, and what could not be found out.
  public var remarks: [String] = []

  /// A server of which nothing is known.
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
  /// What the server says of itself: three commands.
  public func serverState() async throws(StoreError) -> ServerState {
    do throws(RedisError) {
      return ServerState(try await common.checkServer(), address: "\(common.configuration.address)")
    } catch {
      throw StoreError(error)
    }
  }
}
