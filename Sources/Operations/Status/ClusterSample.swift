package import Kafka
package import Store
import Worker

/// The state of one moment, which ``ClusterReport`` judges.
package struct ClusterSample: Sendable {
  /// When it was taken, in milliseconds since 1970.
  package var time: Int64
  /// The same time by a steady clock, for rates.
  package var moment: Int64
  /// Kafka, or why it is unknown.
  package var kafka: Known<KafkaState>
  /// Redis, or why it is unknown; nil if it was not given.
  package var redis: Known<RedisState>?
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
  /// The settings of topics, by topic; none on an embedded broker.
  package var settings: Known<[String: TopicSettings]> = .found([:])
  /// The applications that are stopped or have a rate limit, or why they are unknown.
  package var applications: Known<[ApplicationEntry]> = .found([])
  /// How far all topics are read.
  package var lag: Known<LagSample>
}

/// The settings of a topic that matter.
package struct TopicSettings: Sendable {
  /// How they differ from the recommended ones.
  package var differences: [String]
  /// How many copies must be in sync for a write.
  package var minimumInSync: Int?
}

/// How far the topics are read.
package struct LagSample: Sendable {
  /// The partitions of the group's topics, and then those of the others, which have no committed offsets.
  package var partitions: [PartitionLag]
  /// The group's members; nil if unknown.
  package var members: GroupMembers?
  /// Open transactions.
  package var openTransactions: [OpenTransaction] = []
  /// What is unknown, and why.
  package var notes: [Finding] = []
}

/// An open transaction. Before its end no reader gets its records or the later ones.
package struct OpenTransaction: Sendable, Hashable {
  /// The partition.
  package var partition: TopicPartition
  /// The offset of its first record.
  package var offset: Int64
  /// The number of offsets that wait for its end.
  package var records: Int64
  /// When its first record was written, in milliseconds since 1970.
  package var since: Int64
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
  package var population: Known<Population.Counts>?
  /// How many schedules are pending, and whose; nil if they were not counted.
  package var schedules: Known<ScheduleHolders>?
}

/// The topics of a sample, in its order.
extension Topics {
  /// The topics that the transform workers' group reads.
  var ofGroup: [String] { [requests, devices] }
  /// The topics without a group that grow with the load. The stops of applications do not.
  var ofNoGroup: [String] { [deliveries, events, journal, deadLetters] }
}
