package import Kafka
package import Store

/// The state of one moment, which ``StatusReport`` judges.
package struct StatusSample: Sendable {
  /// When it was taken, in milliseconds since 1970.
  package var time: Int64
  /// Kafka, or why it is unknown.
  package var kafka: Known<KafkaState>
  /// Redis, or why it is unknown.
  package var redis: Known<RedisState>
}

/// A fact, or why it is unknown.
package enum Known<Value: Sendable>: Sendable {
  /// The fact.
  case found(Value)
  /// The reason why it is unknown.
  case unknown(String)

  /// The fact; nil if unknown.
  package var value: Value? { if case .found(let value) = self { value } else { nil } }
  /// The reason; nil if the fact is known.
  package var reason: String? { if case .unknown(let reason) = self { reason } else { nil } }
}

/// The state of Kafka.
package struct KafkaState: Sendable {
  /// Its id, brokers and topics.
  package var cluster: ClusterDescription
  /// How the settings of topics differ from the recommended ones, by topic; unknown ones are left out.
  package var differences: [String: [String]] = [:]
  /// How many copies must be in sync for a write, by topic; unknown ones are left out.
  package var minimumInSync: [String: Int] = [:]
  /// Why the settings are unknown; nil if they are known, and on an embedded broker, which has none.
  package var settingsUnknown: String?
  /// The applications that are stopped or have a rate limit, or why they are unknown.
  package var applications: Known<[ApplicationEntry]> = .found([])
  /// The group's lag.
  package var lag: Known<LagReport>
}

/// The state of Redis.
package struct RedisState: Sendable {
  /// The server's own report.
  package var server: ServerState
  /// The cluster that it belongs to, nil for none; or why that is unknown.
  package var identity: Known<ClusterIdentity?>
  /// The workers' reports, or why they cannot be read.
  package var workers: Known<[Workers.Listing]>
  /// All fan-out lanes, including silent ones, or why they cannot be read.
  package var lanes: Known<[Lanes.Listing]>
  /// The devices and notifications; nil if they were not counted.
  package var population: Known<PopulationEstimate>?
  /// How many schedules are pending, and whose; nil if Kafka has not told the partitions of the requests.
  package var schedules: Known<ScheduleHolders>?
}
