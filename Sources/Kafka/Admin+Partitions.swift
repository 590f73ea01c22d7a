import CRdKafka

extension Admin {
  /// Adds partitions to a topic, and waits until each of them has a leader. Not on the embedded broker.
  ///
  /// - Parameter total: the number of partitions afterwards.
  public func addPartitions(to topic: String, total: Int) async throws(KafkaError) {
    let (operation, timeout) = ("add partitions to \(topic)", timeoutMilliseconds)
    try await call(operation) { client throws(KafkaError) in
      var wanted = rd_kafka_NewPartitions_new(topic, total, nil, 0)
      guard wanted != nil else { throw KafkaError(.invalidConfiguration, operation, message: "\(total) partitions are out of range") }
      defer { rd_kafka_NewPartitions_destroy(wanted) }
      try Self.request(
        client, RD_KAFKA_ADMIN_OP_CREATEPARTITIONS, operation, timeout,
        send: { queue, options in rd_kafka_CreatePartitions(client, &wanted, 1, options, queue) },
        take: { event throws(KafkaError) in
          var count = 0
          let results = rd_kafka_CreatePartitions_result_topics(rd_kafka_event_CreatePartitions_result(event), &count)
          guard count > 0, let result = results?[0] else { return }
          let text = rd_kafka_topic_result_error_string(result).map { String(cString: $0) } ?? ""
          let code = rd_kafka_topic_result_error(result)
          if code != RD_KAFKA_RESP_ERR_NO_ERROR { throw KafkaError(code, operation, message: text) }
        })
    }
    while true {
      let partitions = try await describe(topic: topic).partitions
      if partitions.count >= total, partitions.allSatisfy({ $0.leader >= 0 }) { return }
      try? await Task.sleep(for: .milliseconds(50))
    }
  }
}
