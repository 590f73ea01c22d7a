public import EventLoop

extension Producer {
  /// Sends one record with a producer of its own, and waits for its report. Call it on the loop.
  ///
  /// - Returns: the record's partition and offset.
  public static func sendOne(
    on loop: EventLoop, _ configuration: KafkaConfiguration, to partition: TopicPartition, key: [UInt8], value: [UInt8]?
  ) async throws(KafkaError) -> (partition: Int32, offset: Int64) {
    let producer = try Producer(on: loop, configuration)
    let answer: Result<(partition: Int32, offset: Int64), KafkaError>
    do throws(KafkaError) {
      answer = .success(
        try await producer.send(try producer.topic(partition.topic), partition: partition.partition, key: key, value: value))
    } catch {
      answer = .failure(error)
    }
    await producer.close(withinMilliseconds: 2_000)
    return try answer.get()
  }
}
