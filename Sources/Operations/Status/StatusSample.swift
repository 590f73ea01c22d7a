public import Kafka
public import Store

/// How things stand at one moment: what ``StatusReport`` judges.
public struct StatusSample: Sendable {
  /// When it was taken, in milliseconds since 1970.
  public var time: Int64
  /// Kafka, or why nothing is known of it.
  public var kafka: Known<KafkaState>
  /// Redis, or why nothing is known of it.
  public var redis: Known<RedisState>

  /// A sample of its parts.
  public init(time: Int64, kafka: Known<KafkaState>, redis: Known<RedisState>) {
    (self.time, self.kafka, self.redis) = (time, kafka, redis)
  }
}

/// What was found out, or why it could not be.
public enum Known<Value: Sendable>: Sendable {
  /// It was.
  case found(Value)
  /// It was not.
  case unknown(String)

  /// What was found; nil where it was not.
  public var value: Value? { if case .found(let value) = self { value } else { nil } }
  /// Why it was not; nil where it was.
  public var reason: String? { if case .unknown(let reason) = self { reason } else { nil } }
}

/// What Kafka is and has.
public struct KafkaState: Sendable {
  /// Its id, brokers and topics.
  public var cluster: ClusterDescription
  /// How the settings of topics differ from what they should be, by topic; those that cannot be told are left out.
  public var differences: [String: [String]] = [:]
  /// How many copies must be in step so that a topic can be written, by topic; those that cannot be told are left out.
  public var minimumInSync: [String: Int] = [:]
  /// Why the settings are not known; nil where they are, and on an embedded broker, which has none.
  public var settingsUnknown: String?
  /// The applications that are stopped, or why that is not known.
  public var stopped: Known<[ApplicationLedger.Entry]> = .found([])
  /// The group, and how far it is behind.
  public var lag: Known<LagReport>

  /// A Kafka of its parts.
  public init(cluster: ClusterDescription, lag: Known<LagReport>) { (self.cluster, self.lag) = (cluster, lag) }
}

/// What Redis is and has.
public struct RedisState: Sendable {
  /// What it says of itself.
  public var server: ServerState
  /// Whose it is, with nil where no cluster has used it yet; or why that cannot be read.
  public var identity: Known<ClusterIdentity?>
  /// The workers' reports, or why they cannot be read.
  public var workers: Known<[Workers.Listing]>
  /// The fan-out lanes, those included that are silent, or why they cannot be read.
  public var lanes: Known<[Lanes.Listing]>
  /// Devices and notifications; nil where they were not looked for.
  public var population: Known<PopulationEstimate>?

  /// A Redis of its parts.
  public init(
    server: ServerState, identity: Known<ClusterIdentity?>, workers: Known<[Workers.Listing]>, lanes: Known<[Lanes.Listing]>,
    population: Known<PopulationEstimate>?
  ) {
    (self.server, self.identity, self.workers) = (server, identity, workers)
    (self.lanes, self.population) = (lanes, population)
  }
}
