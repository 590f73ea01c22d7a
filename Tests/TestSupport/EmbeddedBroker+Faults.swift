import BrokerFaults
import EventLoop
public import Kafka

/// Faults of an embedded broker, which no program needs.
extension EmbeddedBroker {
  /// The requests of Kafka's protocol that a test can make fail, by their key.
  public enum Request: Int16, Sendable {
    /// Produce.
    case produce = 0
    /// Metadata.
    case metadata = 3
    /// OffsetCommit.
    case offsetCommit = 8
    /// FindCoordinator.
    case findCoordinator = 10
    /// JoinGroup.
    case joinGroup = 11
    /// Heartbeat.
    case heartbeat = 12
    /// SyncGroup.
    case syncGroup = 14
  }

  /// Makes the next requests of this kind fail, one error each. `transport` cuts the connection instead of an answer.
  ///
  /// For failing produce requests, set producers to `max.in.flight.requests.per.connection=1`. The broker takes a later batch before the
  /// failed one, as Kafka does with a producer that it does not know yet. Then records of an idempotent producer may be `unconfirmed`.
  public func failNext(_ request: Request, with codes: [KafkaError.Code]) throws(KafkaError) {
    let errors = codes.map(\.rawValue)
    try whileOpen("fail requests") { broker_fail(UnsafeMutableRawPointer($0), request.rawValue, errors, errors.count) }
  }

  /// Makes requests of this kind succeed again.
  public func clearFailures(of request: Request) throws(KafkaError) {
    try whileOpen("clear failures") { broker_clear(UnsafeMutableRawPointer($0), request.rawValue) }
  }

  /// Cuts the connections of one broker or of all, and refuses new ones.
  public func takeDown(broker id: Int32 = -1) throws(KafkaError) {
    // The broker binds its port again to keep it. That fails if a child process has inherited the former listener.
    try whileOpen("take broker \(id) down") { cluster in
      ChildProcess.withoutSpawning { broker_set_down(UnsafeMutableRawPointer(cluster), id) }
    }
  }

  /// Brings all brokers up again.
  public func bringUp() throws(KafkaError) {
    try whileOpen("bring the brokers up") { broker_set_up(UnsafeMutableRawPointer($0), -1) }
    answerAtOnce()
  }

  /// Delays each answer of one broker or of all.
  public func setRoundTrip(broker id: Int32 = -1, milliseconds: Int32) throws(KafkaError) {
    try whileOpen("set the round-trip time") { broker_set_round_trip(UnsafeMutableRawPointer($0), id, milliseconds) }
  }

  /// Makes a broker the leader of a partition; -1 leaves it without a leader.
  public func setLeader(of partition: TopicPartition, to broker: Int32) throws(KafkaError) {
    try whileOpen("set the leader of \(partition)") {
      broker_set_leader(UnsafeMutableRawPointer($0), partition.topic, partition.partition, broker)
    }
  }
}
