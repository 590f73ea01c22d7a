public import Kafka
public import Store

/// The state of one moment, which ``StatusReport`` judges.
public struct StatusSample: Sendable {
  /// When it was taken, in milliseconds since 1970.
  public var time: Int64
  /// Kafka, or why it is unknown.
  public var kafka: Known<KafkaState>
  /// Redis, or why it is unknown.
  public var redis: Known<RedisState>
}

/// A fact, or why it is unknown.
public enum Known<Value: Sendable>: Sendable {
  /// The fact.
  case found(Value)
  /// The reason why it is unknown.
  case unknown(String)

  /// The fact; nil if unknown.
  public var value: Value? { if case .found(let value) = self { value } else { nil } }
  /// The reason; nil if the fact is known.
  public var reason: String? { if case .unknown(let reason) = self { reason } else { nil } }
}

/// The state of Kafka.
public struct KafkaState: Sendable {
  /// Its id, brokers and topics.
  public var cluster: ClusterDescription
  /// How the settings of topics differ from the recommended ones, by topic; unknown ones are left out.
  public var differences: [String: [String]] = [:]
  /// How many copies must be in sync for a write, by topic; unknown ones are left out.
  public var minimumInSync: [String: Int] = [:]
  /// Why the settings are unknown; nil if they are known, and on an embedded broker, which has none.
  public var settingsUnknown: String?
  /// The applications that are stopped or have a rate limit, or why they are unknown.
  public var applications: Known<[ApplicationLedger.Entry]> = .found([])
  /// The group's lag.
  public var lag: Known<LagReport>
}

/// The state of Redis.
public struct RedisState: Sendable {
  /// The server's own report.
  public var server: ServerState
  /// The cluster that it belongs to, nil for none; or why that is unknown.
  public var identity: Known<ClusterIdentity?>
  /// The workers' reports, or why they cannot be read.
  public var workers: Known<[Workers.Listing]>
  /// All fan-out lanes, including silent ones, or why they cannot be read.
  public var lanes: Known<[Lanes.Listing]>
  /// The devices and notifications; nil if they were not counted.
  public var population: Known<PopulationEstimate>?
  /// How many schedules are pending, and whose; nil if Kafka has not told the partitions of the requests.
  public var schedules: Known<ScheduleHolders>?
}
