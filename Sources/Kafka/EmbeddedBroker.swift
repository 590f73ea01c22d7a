import CRdKafka
import EventLoop
import Synchronization

/// librdkafka's mock cluster: a Kafka in this process, for trials and tests. From any thread.
///
/// It listens on free ports of 127.0.0.1, and other processes may use it while this one lives. It keeps 5 MiB of each partition, and
/// nothing on disk. It does not create topics by request (unknown topics appear when a client asks for them), find offsets by time, or list
/// groups. The first member of a group waits 3 s.
///
/// - Note: `@unchecked Sendable` because both pointers are constant, the mock cluster takes its own lock in every call, and a lock keeps
///   calls from overlapping with `close`.
public final class EmbeddedBroker: @unchecked Sendable {
  /// Settings for its clients. An idle fetch sleeps its whole `fetch.wait.max.ms`, so new records wait that long, and each fetch costs the
  /// brokers' thread 0.1 ms. It ignores `fetch.min.bytes`. A rebalance takes the session timeout minus a second.
  public static let clientProperties = [
    "fetch.wait.max.ms": "25", "fetch.error.backoff.ms": "50", "session.timeout.ms": "4000", "heartbeat.interval.ms": "300",
  ]

  /// `HOST:PORT` of each broker.
  public let bootstrapServers: [String]
  private let client: ClientHandle
  private let cluster: OpaquePointer
  private let isOpen = Mutex(true)
  private let ended = Latch()

  /// Starts brokers with ids from 1 on, and creates topics.
  ///
  /// - Parameter topics: names and numbers of partitions. Other topics appear with 4 partitions when a client asks for them.
  public init(brokers: Int32 = 1, topics: [(name: String, partitions: Int32)] = []) throws(KafkaError) {
    let object = ConfigurationObject()
    try object.set("client.id", "embedded-broker")
    rd_kafka_conf_set_log_cb(object.pointer, nil)
    let client = try ClientHandle(RD_KAFKA_PRODUCER, object)
    self.client = client
    guard let cluster = ChildProcess.withoutSpawning({ rd_kafka_mock_cluster_new(client.pointer, brokers) }) else {
      client.end(leavingGroup: false)
      throw KafkaError(RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE, "start an embedded broker", message: "no ports or descriptors are left")
    }
    self.cluster = cluster
    let servers = String(cString: rd_kafka_mock_cluster_bootstraps(cluster))
    bootstrapServers = servers.split(separator: ",").map(String.init)
    answerAtOnce()
    do throws(KafkaError) {
      for topic in topics { try createTopic(topic.name, partitions: topic.partitions) }
    } catch {
      end()
      throw error
    }
  }

  /// The configuration of its clients.
  public var configuration: KafkaConfiguration { KafkaConfiguration(bootstrapServers: bootstrapServers, properties: Self.clientProperties) }

  /// Creates a topic.
  public func createTopic(_ name: String, partitions: Int32) throws(KafkaError) {
    try whileOpen("create topic \(name)") { rd_kafka_mock_topic_create($0, name, partitions, 1).rawValue }
  }

  /// Stops all brokers. Their records are lost.
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
      client.end(leavingGroup: false) { [ended] _ in ended.open(true) }
    }
  }

  /// Makes a call of the mock cluster, which answers librdkafka's code of an error; 0 for success.
  package func whileOpen(_ operation: String, _ body: (OpaquePointer) -> Int32) throws(KafkaError) {
    let code = isOpen.withLock { isOpen in
      guard isOpen else { return RD_KAFKA_RESP_ERR__DESTROY }
      attract()
      return rd_kafka_resp_err_t(body(cluster))
    }
    try check(code, operation)
  }

  /// Makes the brokers' thread look for calls once more before it sleeps.
  ///
  /// The thread sleeps in `poll` for up to a second, and a call wakes it through a pipe. It empties the pipe only after it has answered the
  /// calls. So a call that comes just then loses its wake-up and waits the whole second. A new connection always wakes it.
  private func attract() {
    // One connection is enough, since all brokers share the thread. A broker that is down refuses it.
    for port in bootstrapServers.compactMap(Self.port) {
      if LoopbackSocket()?.connect(to: port) == true { return }
    }
  }

  /// Makes the brokers send each answer at once.
  ///
  /// By Nagle's algorithm an answer waits until the client's kernel acknowledges the one before, up to 40 ms later. A client that reads
  /// a partition and asks for something else meanwhile would get one batch in that time.
  package func answerAtOnce() {
    LoopbackSocket.sendAtOnce(toClientsOf: Set(bootstrapServers.compactMap(Self.port)))
  }

  private static func port(_ server: String) -> UInt16? { server.split(separator: ":").last.flatMap { UInt16($0) } }
}
