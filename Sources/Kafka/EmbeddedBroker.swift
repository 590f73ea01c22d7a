import CRdKafka
import EventLoop
import Synchronization

/// librdkafka's mock cluster: a Kafka in this process, for trying things out and for tests. From any thread.
///
/// It listens on 127.0.0.1, on ports of its own choice, and other processes may use it as long as this one lives. It keeps 5 MiB of
/// each partition and nothing on disk. It cannot create topics by request (unknown ones appear when asked for), find offsets by time,
/// or list groups. The first member of a group waits 3 s.
///
/// - Note: `@unchecked Sendable` because both pointers are constant, the mock cluster takes its own lock in every call, and calls are
///   kept from overlapping with the end by a lock.
public final class EmbeddedBroker: @unchecked Sendable {
  /// What clients should be set to: an idle fetch sleeps its whole `fetch.wait.max.ms` there, so new records wait up to as long, and each
  /// costs the brokers' thread 0.1 ms; `fetch.min.bytes` is passed over. A rebalance takes the session timeout less a second.
  public static let clientProperties = [
    "fetch.wait.max.ms": "25", "fetch.error.backoff.ms": "50", "session.timeout.ms": "4000", "heartbeat.interval.ms": "300",
    // It makes topics that are asked for whatever a client says, and librdkafka warns of that unless it is allowed to.
    "allow.auto.create.topics": "true",
  ]

  /// The requests of Kafka's protocol that a test may want to fail, by their key.
  public enum Request: Int16, Sendable {
    /// Produce.
    case produce = 0
    /// Fetch.
    case fetch = 1
    /// ListOffsets.
    case listOffsets = 2
    /// Metadata.
    case metadata = 3
    /// OffsetCommit.
    case offsetCommit = 8
    /// OffsetFetch.
    case offsetFetch = 9
    /// FindCoordinator.
    case findCoordinator = 10
    /// JoinGroup.
    case joinGroup = 11
    /// Heartbeat.
    case heartbeat = 12
    /// SyncGroup.
    case syncGroup = 14
  }

  /// `HOST:PORT` of each broker.
  public let bootstrapServers: [String]
  private let client: ClientHandle
  private let cluster: OpaquePointer
  private let isOpen = Mutex(true)
  private let ended = Latch()

  /// Starts brokers with the ids from 1, and makes topics.
  ///
  /// - Parameter topics: names and numbers of partitions; other topics appear with 4 when they are asked for.
  public init(brokers: Int32 = 1, topics: [(name: String, partitions: Int32)] = []) throws(KafkaError) {
    let object = ConfigurationObject()
    try object.set("client.id", "embedded-broker")
    rd_kafka_conf_set_log_cb(object.pointer, nil)
    let client = try ClientHandle(RD_KAFKA_PRODUCER, object)
    self.client = client
    guard let cluster = ChildProcess.withoutSpawning({ rd_kafka_mock_cluster_new(client.pointer, brokers) }) else {
      client.end(leavingGroup: false) {}
      throw KafkaError(RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE, "start an embedded broker", message: "no ports or descriptors are left")
    }
    self.cluster = cluster
    let servers = String(cString: rd_kafka_mock_cluster_bootstraps(cluster))
    bootstrapServers = servers.split(separator: ",").map(String.init)
    do throws(KafkaError) {
      for topic in topics { try createTopic(topic.name, partitions: topic.partitions) }
    } catch {
      end()
      throw error
    }
  }

  /// How to reach it.
  public var configuration: KafkaConfiguration { KafkaConfiguration(bootstrapServers: bootstrapServers, properties: Self.clientProperties) }

  /// Makes a topic.
  public func createTopic(_ name: String, partitions: Int32, replication: Int32 = 1) throws(KafkaError) {
    try whileOpen("create topic \(name)") { rd_kafka_mock_topic_create($0, name, partitions, replication) }
  }

  /// Ends all brokers; their records are gone.
  public func close() async {
    let isFirst = isOpen.withLock { isOpen in
      defer { isOpen = false }
      return isOpen
    }
    if isFirst { end() }
    _ = await ended.wait()
  }

  private func end() {
    NamedThread.start("kafka-close") { [self] in
      attract()
      rd_kafka_mock_cluster_destroy(cluster)
      client.end(leavingGroup: false) { [ended] in ended.open(true) }
    }
  }

  private func whileOpen(_ operation: String, _ body: (OpaquePointer) -> rd_kafka_resp_err_t) throws(KafkaError) {
    let code = isOpen.withLock { isOpen in
      guard isOpen else { return RD_KAFKA_RESP_ERR__DESTROY }
      attract()
      return body(cluster)
    }
    try check(code, operation)
  }

  /// Has the brokers' thread look for calls once more before it sleeps.
  ///
  /// It sleeps in `poll` for up to a second, and a call wakes it through a pipe. That it empties only when it has already answered what it found:
  /// who calls again at once loses his wake-up to that, and waits the whole second. A connection to be accepted is not lost.
  private func attract() {
    // One of them is enough, for all share the thread; one that is down refuses.
    for port in bootstrapServers.compactMap(Self.port) {
      if LoopbackSocket()?.connect(to: port) == true { return }
    }
  }

  private static func port(_ server: String) -> UInt16? { server.split(separator: ":").last.flatMap { UInt16($0) } }

  // MARK: Faults

  /// Has the next requests of that kind fail, one error each; `transport` cuts the connection instead of answering.
  ///
  /// With failing produce requests give producers `max.in.flight.requests.per.connection=1`: it takes a later batch before the failed one,
  /// as Kafka does of a producer that it does not know yet, so that an idempotent producer's records may be `unconfirmed`.
  public func failNext(_ request: Request, with codes: [KafkaError.Code]) throws(KafkaError) {
    let errors = codes.map { rd_kafka_resp_err_t($0.rawValue) }
    try whileOpen("fail requests") {
      rd_kafka_mock_push_request_errors_array($0, request.rawValue, errors.count, errors)
      return RD_KAFKA_RESP_ERR_NO_ERROR
    }
  }

  /// Has requests of that kind succeed again.
  public func clearFailures(of request: Request) throws(KafkaError) {
    try whileOpen("clear failures") {
      rd_kafka_mock_clear_request_errors($0, request.rawValue)
      return RD_KAFKA_RESP_ERR_NO_ERROR
    }
  }

  /// Cuts the connections of a broker, or of all, and refuses new ones.
  public func takeDown(broker id: Int32 = -1) throws(KafkaError) {
    // It binds its port again, to keep it, for which nobody else may have the listener that was there.
    try whileOpen("take broker \(id) down") { cluster in ChildProcess.withoutSpawning { rd_kafka_mock_broker_set_down(cluster, id) } }
  }

  /// Accepts connections again; all that are down come up.
  public func bringUp() throws(KafkaError) {
    try whileOpen("bring the brokers up") { rd_kafka_mock_broker_set_up($0, -1) }
  }

  /// Delays each answer of a broker, or of all.
  public func setRoundTrip(broker id: Int32 = -1, milliseconds: Int32) throws(KafkaError) {
    try whileOpen("set the round-trip time") { rd_kafka_mock_broker_set_rtt($0, id, milliseconds) }
  }

  /// Makes a broker the leader of a partition; -1 leaves it without one.
  public func setLeader(of partition: TopicPartition, to broker: Int32) throws(KafkaError) {
    try whileOpen("set the leader of \(partition)") {
      rd_kafka_mock_partition_set_leader($0, partition.topic, partition.partition, broker)
    }
  }
}
