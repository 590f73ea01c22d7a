import Foundation
import Kafka

/// Writes a batch that librdkafka refuses to decompress: records of zeros, some thousand bytes in Kafka, whose content would take more than
/// what a client may receive. The Python client does it, on a real Kafka. All of the records are in one batch, however slow the machine is: the
/// client waits for minutes for more of them, and a flush ends this wait.
public enum BombWriter {
  /// Whether there is a Kafka and a Python for it.
  public static var isPossible: Bool { TransactionalWriter.isPossible }

  /// Writes one batch of so many records, and one record behind it where that is wanted.
  public static func write(to topic: String, records: Int = 3, on kafka: KafkaFixture) async throws {
    let servers = kafka.configuration.bootstrapServers.joined(separator: ",")
    try await CarillonCommand.with { command in
      let result = try await command.run(
        [try command.file("bomb.py", script), servers, topic, String(records)], program: URL(fileURLWithPath: ClusterFixture.python ?? ""))
      if result.status != 0 { throw CommandFailure(description: "the bomb was not written: \(result.errors)") }
    }
  }

  private static let script = """
    import sys
    from confluent_kafka import Producer
    servers, topic, count = sys.argv[1:]
    producer = Producer({"bootstrap.servers": servers, "compression.type": "zstd", "message.max.bytes": 1000000000, "linger.ms": 300000,
        "batch.size": 1000000000, "message.timeout.ms": 600000})
    failures = []
    value = bytes(150_000_000 // int(count))
    for number in range(int(count)):
        producer.produce(topic, key=b"bomb", value=value, partition=0, on_delivery=lambda error, _: failures.append(error) if error else None)
    if producer.flush(300) > 0 or failures:
        sys.exit("not written: %s" % failures)
    """
}
