import CRdKafka
import Glibc

/// A topic that is wanted.
public struct TopicSpecification: Sendable, Hashable {
  /// Its name.
  public var name: String
  /// How many partitions; -1 for the broker's default.
  public var partitions: Int32
  /// How many copies; -1 for the broker's default.
  public var replication: Int32
  /// Settings of the topic by Kafka's names, such as `cleanup.policy`.
  public var settings: [String: String]

  /// Says what is wanted.
  public init(_ name: String, partitions: Int32 = -1, replication: Int32 = -1, settings: [String: String] = [:]) {
    self.name = name
    self.partitions = partitions
    self.replication = replication
    self.settings = settings
  }
}

/// A topic as the cluster knows it.
public struct TopicDescription: Sendable, Hashable {
  /// One partition.
  public struct Partition: Sendable, Hashable {
    /// Its number.
    public var id: Int32
    /// The broker that leads it; -1 when none does.
    public var leader: Int32
    /// How many copies it has.
    public var replicas: Int
    /// How many of them are in step.
    public var inSync: Int
    /// The brokers that have those.
    public var inSyncBrokers: [Int32] = []
  }

  /// Its name.
  public var name: String
  /// Its partitions, by number.
  public var partitions: [Partition]
}

/// What the cluster consists of.
public struct ClusterDescription: Sendable, Hashable {
  /// The cluster's own id; nil when the brokers tell none.
  public var id: String?
  /// `HOST:PORT` of the brokers by their ids.
  public var brokers: [Int32: String]
  /// The topics by their names.
  public var topics: [String: TopicDescription]

  /// Whether it is librdkafka's embedded one, which cannot do everything that a real one does.
  public var isEmbedded: Bool { id?.hasPrefix("mockCluster") == true }
}

extension Admin {
  /// Asks for all brokers and topics; it makes no topic.
  public func describeCluster() async throws(KafkaError) -> ClusterDescription {
    try await ask("describe the cluster") { client, timeout throws(KafkaError) in try Self.describe(client, nil, timeout) }
  }

  /// Asks any broker for nothing, and returns when it has answered.
  public func ping() async throws(KafkaError) {
    try await ask("ask Kafka for an answer") { client, timeout throws(KafkaError) in
      var metadata: UnsafePointer<rd_kafka_metadata>?
      try check(rd_kafka_metadata(client, 0, nil, &metadata, timeout), "ask Kafka for an answer")
      if let metadata { rd_kafka_metadata_destroy(metadata) }
    }
  }

  /// Describes one topic; it makes no topic.
  ///
  /// - Throws: `unknownTopicOrPartition` when there is none of that name.
  public func describe(topic name: String) async throws(KafkaError) -> TopicDescription {
    guard let topic = try await describeCluster().topics[name] else {
      throw KafkaError(.unknownTopicOrPartition, "describe topic \(name)", message: "there is no such topic")
    }
    return topic
  }

  /// Makes topics.
  ///
  /// - Returns: by name, the errors of those that were not made; `topicExists` is one of them.
  /// - Throws: the whole request's error; on the embedded broker `timedOut`.
  public func createTopics(_ topics: [TopicSpecification]) async throws(KafkaError) -> [String: KafkaError] {
    guard !topics.isEmpty else { return [:] }
    let timeout = timeoutMilliseconds
    return try await call("create topics") { client throws(KafkaError) in try Self.create(client, topics, timeout) }
  }

  /// Makes the topics that are missing and waits until each has leaders.
  ///
  /// On the embedded broker, where topics cannot be made by request, they are asked for, which makes them with 4 partitions (in its own
  /// process use `EmbeddedBroker.createTopic`). Topics that exist are left as they are: compare the answer with what is wanted.
  ///
  /// - Returns: all of them as they are now, by name.
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

  /// The settings of a topic, by name.
  public func settings(ofTopic name: String) async throws(KafkaError) -> [String: String] {
    try await settings(RD_KAFKA_RESOURCE_TOPIC, name, "describe the settings of topic \(name)")
  }

  /// The settings of a broker, by name; brokers may refuse it to those who are no administrators.
  public func settings(ofBroker id: Int32) async throws(KafkaError) -> [String: String] {
    try await settings(RD_KAFKA_RESOURCE_BROKER, String(id), "describe the settings of broker \(id)")
  }

  /// Whether a broker answers at all, within three seconds; nil where it does, and refuses to be asked.
  public func answers(broker id: Int32) async -> Bool? {
    let operation = "ask broker \(id) for an answer"
    do throws(KafkaError) {
      return try await call(operation) { client throws(KafkaError) in
        var resource = rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_BROKER, String(id))
        defer { rd_kafka_ConfigResource_destroy(resource) }
        // One setting is the smallest answer.
        rd_kafka_ConfigResource_set_config(resource, "broker.id", "")
        return try Self.request(
          client, RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS, operation, 3_000,
          send: { queue, options in rd_kafka_DescribeConfigs(client, &resource, 1, options, queue) },
          take: { event -> Bool? in
            var count = 0
            let resources = rd_kafka_DescribeConfigs_result_resources(rd_kafka_event_DescribeConfigs_result(event), &count)
            return rd_kafka_ConfigResource_error(resources?[0]) == RD_KAFKA_RESP_ERR_NO_ERROR ? true : nil
          })
      }
    } catch {
      return [.clusterNotAuthorized, .topicNotAuthorized, .unsupported].contains(error.code) ? nil : false
    }
  }

  private func settings(_ kind: rd_kafka_ResourceType_t, _ name: String, _ operation: String) async throws(KafkaError) -> [String: String] {
    try await ask(operation) { client, timeout throws(KafkaError) in
      var resource = rd_kafka_ConfigResource_new(kind, name)
      defer { rd_kafka_ConfigResource_destroy(resource) }
      return try Self.request(
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
  }

  /// Asks for all topics, or for one, which makes it where the broker is set so.
  private static func describe(_ client: OpaquePointer, _ topic: String?, _ timeout: Int32) throws(KafkaError) -> ClusterDescription {
    let handle = topic.flatMap { rd_kafka_topic_new(client, $0, nil) }
    defer { if let handle { rd_kafka_topic_destroy(handle) } }
    var metadata: UnsafePointer<rd_kafka_metadata>?
    try check(rd_kafka_metadata(client, handle == nil ? 1 : 0, handle, &metadata, timeout), "ask for the cluster's topics")
    guard let metadata else { throw KafkaError(.timedOut, "ask for the cluster's topics") }
    defer { rd_kafka_metadata_destroy(metadata) }
    var cluster = ClusterDescription(id: nil, brokers: [:], topics: [:])
    // Known since the answer above, so it does not wait.
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
      // Leaders are elected after the answer; Kafka has no call that waits for them.
      usleep(50_000)
      remaining -= 50
    }
  }
}
