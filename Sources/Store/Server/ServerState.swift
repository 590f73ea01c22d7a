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
  /// What was found, by severity.
  public var findings: [Severity: [String]] = [:]

  /// The severity of a finding.
  public enum Severity: Sendable, CaseIterable {
    /// A guarantee cannot be kept: do not start.
    case error
    /// It cannot be used now, but that may change by itself: ask again.
    case passing
    /// It works, but worse than it could.
    case warning
    /// Something could not be checked.
    case note
  }

  /// A server before its first report.
  public init(address: String) { self.address = address }

  /// Why workers must not rely on it, and what to change; nil if there is no known objection.
  public var objection: String? { errors.first }
  /// Why workers cannot use it, for good or for now.
  public var errors: [String] { texts(.error) + texts(.passing) }
  /// What could be better, and what could not be read.
  public var remarks: [String] { texts(.warning) + texts(.note) }

  /// The findings of a severity.
  public func texts(_ severity: Severity) -> [String] { findings[severity] ?? [] }
}

extension Shards {
  /// Reads the server's state, by three commands.
  public func serverState() async throws(StoreError) -> ServerState {
    do throws(RedisError) { return try await common.checkServer() } catch { throw StoreError(error) }
  }
}
