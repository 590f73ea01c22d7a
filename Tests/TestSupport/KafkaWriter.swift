public import EventLoop
public import Kafka

/// Writes single records, each within a few milliseconds: for tests in which it matters what happens soon after.
public actor KafkaWriter: LoopActor {
  /// The loop that it lives on.
  public nonisolated let loop: EventLoop
  private let configuration: KafkaConfiguration
  private var producer: Producer?

  private init(_ configuration: KafkaConfiguration) {
    loop = EventLoop(name: "kafka-writer")
    self.configuration = configuration
  }

  /// Gives `body` a writer, and ends it afterwards.
  public static func with<R: Sendable>(_ configuration: KafkaConfiguration, _ body: @Sendable (KafkaWriter) async throws -> R) async throws
    -> R
  {
    let writer = KafkaWriter(configuration)
    let result: Result<R, any Error>
    do { result = .success(try await body(writer)) } catch { result = .failure(error) }
    await writer.close()
    await writer.loop.close()
    return try result.get()
  }

  /// Writes a record, and returns when it is in the topic.
  public func write(_ record: TestRecord, to topic: String) async throws {
    let producer = try producer ?? open()
    let headers = RecordHeaders()
    for header in record.headers {
      header.name.withCString { name in
        if let value = header.value { value.withUnsafeBytes { headers.append(name, $0) } } else { headers.append(name, nil) }
      }
    }
    _ = try await producer.send(
      try producer.topic(topic), partition: record.partition, key: record.key, value: record.value, headers: headers,
      timestamp: record.timestamp)
  }

  private func open() throws(KafkaError) -> Producer {
    var options = Producer.Options()
    options.lingerMilliseconds = 0
    let made = try Producer(on: loop, configuration, options)
    producer = made
    return made
  }

  private func close() async { await producer?.close(withinMilliseconds: hangMilliseconds) }
}
