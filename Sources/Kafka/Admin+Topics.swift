import CRdKafka
import Glibc

/// A topic to create.
public struct TopicSpecification: Sendable, Hashable {
  /// Its name.
  public var name: String
  /// The number of partitions; -1 for the broker's default.
  public var partitions: Int32
  /// The number of copies; -1 for the broker's default.
  public var replication: Int32
  /// Settings of the topic by Kafka's names, such as `cleanup.policy`.
  var settings: [String: String]

  /// A topic of its parts.
  public init(_ name: String, partitions: Int32, replication: Int32 = -1, settings: [String: String] = [:]) {
    self.name = name
    self.partitions = partitions
    self.replication = replication
    self.settings = settings
  }
}

/// A topic as the cluster describes it.
public struct TopicDescription: Sendable, Hashable {
  /// One partition.
  public struct Partition: Sendable, Hashable {
    /// Its number.
    public var id: Int32
    /// The broker that leads it; -1 if it has no leader.
    public var leader: Int32
    /// The number of its copies.
    public var replicas: Int
    /// The number of copies that are in sync.
    public var inSync: Int
    /// The brokers of these copies.
    public var inSyncBrokers: [Int32] = []
  }

  /// Its name.
  public var name: String
  /// Its partitions, by number.
  public var partitions: [Partition]
}

/// The brokers and topics of a cluster.
public struct ClusterDescription: Sendable, Hashable {
  /// The cluster's own id; nil if the brokers have none.
  public var id: String?
  /// `HOST:PORT` of the brokers by their ids.
  public var brokers: [Int32: String]
  /// The topics by their names.
  public var topics: [String: TopicDescription]

  /// Whether it is librdkafka's embedded broker, which lacks some functions of a real one.
  public var isEmbedded: Bool { id?.hasPrefix("mockCluster") == true }
}

extension Admin {
  /// Reads all brokers and topics. It creates no topic.
  public func describeCluster() async throws(KafkaError) -> ClusterDescription {
    try await ask("describe the cluster") { client, timeout throws(KafkaError) in try Self.describe(client, nil, timeout) }
  }

  /// Whether the cluster is an embedded broker, of this process or of another.
  ///
  /// An embedded broker does not create topics by request, find offsets by time, or describe a topic's settings.
  public func isEmbeddedBroker() async throws(KafkaError) -> Bool { try await describeCluster().isEmbedded }

  /// Waits for an answer of any broker.
  public func ping() async throws(KafkaError) {
    try await ask("ask Kafka for an answer") { client, timeout throws(KafkaError) in
      var metadata: UnsafePointer<rd_kafka_metadata>?
      try check(rd_kafka_metadata(client, 0, nil, &metadata, timeout), "ask Kafka for an answer")
      if let metadata { rd_kafka_metadata_destroy(metadata) }
    }
  }

  /// Describes one topic. It does not create it.
  ///
  /// - Throws: `unknownTopicOrPartition` if there is no such topic.
  public func describe(topic name: String) async throws(KafkaError) -> TopicDescription {
    guard let topic = try await describeCluster().topics[name] else {
      throw KafkaError(.unknownTopicOrPartition, "describe topic \(name)", message: "there is no such topic")
    }
    return topic
  }

  /// Creates the missing topics and waits until each has leaders.
  ///
  /// The embedded broker creates no topics by request, so this asks for them, which creates them with 4 partitions. In the broker's own
  /// process use `EmbeddedBroker.createTopic`. Existing topics stay as they are: compare the answer with the specification.
  ///
  /// - Returns: all these topics as they are now, by name.
  @discardableResult
  public func ensureTopics(_ topics: [TopicSpecification]) async throws(KafkaError) -> [String: TopicDescription] {
    let timeout = timeoutMilliseconds
    return try await call("ensure topics") { client throws(KafkaError) in
      let cluster = try Self.describe(client, nil, timeout)
      let missing = topics.filter { cluster.topics[$0.name] == nil }
      if cluster.isEmbedded {
        for topic in missing { _ = try Self.describe(client, topic.name, timeout) }
      } else if !missing.isEmpty {
        for (_, error) in try Self.create(client, missing, timeout) where error.code != .topicExists { throw error }
      }
      return try Self.awaitLeaders(client, topics.map(\.name), timeout)
    }
  }

  /// Reads the settings of a topic, by name.
  public func settings(ofTopic name: String) async throws(KafkaError) -> [String: String] {
    try await settings(RD_KAFKA_RESOURCE_TOPIC, name, "describe the settings of topic \(name)")
  }

  /// Reads the settings of a broker, by name. Brokers may refuse that to clients that are not administrators.
  public func settings(ofBroker id: Int32) async throws(KafkaError) -> [String: String] {
    try await settings(RD_KAFKA_RESOURCE_BROKER, String(id), "describe the settings of broker \(id)")
  }

  /// Whether a broker answers within three seconds; nil if it answers with an error.
  public func answers(broker id: Int32) async -> Bool? {
    let operation = "ask broker \(id) for an answer"
    do throws(KafkaError) {
      // One setting is the smallest answer.
      _ = try await call(operation) { client throws(KafkaError) in
        try Self.settings(RD_KAFKA_RESOURCE_BROKER, String(id), only: "broker.id", operation, client, 3_000)
      }
      return true
    } catch {
      return [.timedOut, .transport, .allBrokersDown].contains(error.code) ? false : nil
    }
  }

  private func settings(_ kind: rd_kafka_ResourceType_t, _ name: String, _ operation: String) async throws(KafkaError) -> [String: String] {
    try await ask(operation) { client, timeout throws(KafkaError) in try Self.settings(kind, name, operation, client, timeout) }
  }

  private static func settings(
    _ kind: rd_kafka_ResourceType_t, _ name: String, only setting: String? = nil, _ operation: String, _ client: OpaquePointer,
    _ timeout: Int32
  ) throws(KafkaError) -> [String: String] {
    var resource = rd_kafka_ConfigResource_new(kind, name)
    defer { rd_kafka_ConfigResource_destroy(resource) }
    if let setting { rd_kafka_ConfigResource_set_config(resource, setting, "") }
    return try request(
      client, RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS, operation, timeout,
      send: { queue, options in rd_kafka_DescribeConfigs(client, &resource, 1, options, queue) },
      take: { event throws(KafkaError) in
        var settings: [String: String] = [:]
        var count = 0
        let resources = rd_kafka_DescribeConfigs_result_resources(rd_kafka_event_DescribeConfigs_result(event), &count)
        for place in 0..<count {
          try check(rd_kafka_ConfigResource_error(resources?[place]), operation)
          var entries = 0
          let list = rd_kafka_ConfigResource_configs(resources?[place], &entries)
          for entry in 0..<entries {
            guard let name = rd_kafka_ConfigEntry_name(list?[entry]), let value = rd_kafka_ConfigEntry_value(list?[entry]) else {
              continue
            }
            settings[String(cString: name)] = String(cString: value)
          }
        }
        return settings
      })
  }

  /// Describes all topics or one. With the broker's setting for it, asking for one creates it.
  private static func describe(_ client: OpaquePointer, _ topic: String?, _ timeout: Int32) throws(KafkaError) -> ClusterDescription {
    let handle = topic.flatMap { rd_kafka_topic_new(client, $0, nil) }
    defer { if let handle { rd_kafka_topic_destroy(handle) } }
    var metadata: UnsafePointer<rd_kafka_metadata>?
    try check(rd_kafka_metadata(client, handle == nil ? 1 : 0, handle, &metadata, timeout), "ask for the cluster's topics")
    guard let metadata else { throw KafkaError(.timedOut, "ask for the cluster's topics") }
    defer { rd_kafka_metadata_destroy(metadata) }
    var cluster = ClusterDescription(id: nil, brokers: [:], topics: [:])
    // The answer above contained it, so this does not wait.
    if let id = rd_kafka_clusterid(client, 1_000) {
      cluster.id = String(cString: id)
      rd_kafka_mem_free(client, id)
    }
    for place in 0..<Int(metadata.pointee.broker_cnt) {
      let broker = metadata.pointee.brokers[place]
      cluster.brokers[broker.id] = "\(String(cString: broker.host)):\(broker.port)"
    }
    for place in 0..<Int(metadata.pointee.topic_cnt) {
      let topic = metadata.pointee.topics[place]
      guard topic.err == RD_KAFKA_RESP_ERR_NO_ERROR else { continue }
      let partitions = (0..<Int(topic.partition_cnt)).map { number in
        let partition = topic.partitions[number]
        return TopicDescription.Partition(
          id: partition.id, leader: partition.leader, replicas: Int(partition.replica_cnt), inSync: Int(partition.isr_cnt),
          inSyncBrokers: (0..<Int(partition.isr_cnt)).map { partition.isrs[$0] })
      }
      let name = String(cString: topic.topic)
      cluster.topics[name] = TopicDescription(name: name, partitions: partitions.sorted { $0.id < $1.id })
    }
    return cluster
  }

  private static func create(_ client: OpaquePointer, _ topics: [TopicSpecification], _ timeout: Int32) throws(KafkaError)
    -> [String: KafkaError]
  {
    var wanted: [OpaquePointer?] = []
    defer { for topic in wanted { rd_kafka_NewTopic_destroy(topic) } }
    for topic in topics {
      guard let new = rd_kafka_NewTopic_new(topic.name, topic.partitions, topic.replication, nil, 0) else {
        throw KafkaError(
          .invalidConfiguration, "create topic \(topic.name)", message: "its name, its partitions or its copies are out of range")
      }
      wanted.append(new)
      for (name, value) in topic.settings {
        try check(rd_kafka_NewTopic_set_config(new, name, value), "set \(name) of topic \(topic.name)")
      }
    }
    return try request(
      client, RD_KAFKA_ADMIN_OP_CREATETOPICS, "create topics \(topics.map(\.name).joined(separator: ", "))", timeout,
      send: { queue, options in rd_kafka_CreateTopics(client, &wanted, wanted.count, options, queue) },
      take: { event in
        var errors: [String: KafkaError] = [:]
        var count = 0
        let results = rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event), &count)
        for place in 0..<count {
          guard let result = results?[place], let name = rd_kafka_topic_result_name(result) else { continue }
          let code = rd_kafka_topic_result_error(result)
          guard code != RD_KAFKA_RESP_ERR_NO_ERROR else { continue }
          let text = rd_kafka_topic_result_error_string(result).map { String(cString: $0) } ?? ""
          errors[String(cString: name)] = KafkaError(code, "create topic \(String(cString: name))", message: text)
        }
        return errors
      })
  }

  private static func awaitLeaders(_ client: OpaquePointer, _ names: [String], _ timeout: Int32) throws(KafkaError) -> [String:
    TopicDescription]
  {
    var remaining = timeout
    while true {
      let known = try describe(client, nil, timeout).topics
      let ready = names.compactMap { known[$0] }.filter { !$0.partitions.isEmpty && $0.partitions.allSatisfy { $0.leader >= 0 } }
      if ready.count == names.count { return Dictionary(ready.map { ($0.name, $0) }) { first, _ in first } }
      guard remaining > 0 else {
        let waiting = names.filter { name in !ready.contains { $0.name == name } }
        throw KafkaError(.timedOut, "wait for topics", message: "no leaders yet for \(waiting.joined(separator: ", "))")
      }
      // Leaders are elected after the answer. Kafka has no call that waits for them.
      usleep(50_000)
      remaining -= 50
    }
  }
}
