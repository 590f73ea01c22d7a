import Foundation
import Kafka

/// Writes records in transactions, as mirrors, restores and migrations do: a transaction's end is an offset without a record.
///
/// The Python client does it, on a real Kafka; neither this package's producer nor the embedded broker knows transactions.
public enum TransactionalWriter {
  /// How a transaction ends.
  public enum End: String, Sendable {
    /// Its records count.
    case committed
    /// Its records count for nothing.
    case aborted
    /// Its writer is gone, and Kafka waits for its end. The next transaction of the same topic ends it.
    case open
  }

  /// Whether there is a Kafka and a Python for it.
  public static var isPossible: Bool { KafkaFixture.realServers != nil && ClusterFixture.python != nil }

  /// Writes one transaction.
  public static func write(_ records: [TestRecord], to topic: String, on kafka: KafkaFixture, _ end: End = .committed) async throws {
    let servers = kafka.configuration.bootstrapServers.joined(separator: ",")
    let lines = records.map { record in
      [record.key.map { Data($0).base64EncodedString() } ?? "-", record.value.map { Data($0).base64EncodedString() } ?? "-"].joined(
        separator: " ") + " \(record.partition ?? 0) \(record.timestamp ?? 0) "
        + record.headers.map { "\($0.name)=\(Data($0.value ?? []).base64EncodedString())" }.joined(separator: " ")
    }
    try await CarillonCommand.with { command in
      let result = try await command.run(
        [try command.file("transaction.py", script), servers, topic, end.rawValue], input: lines.joined(separator: "\n"),
        program: URL(fileURLWithPath: ClusterFixture.python ?? ""))
      if result.status != 0 { throw CommandFailure(description: "the transaction was not written: \(result.errors)") }
    }
  }

  private static let script = """
    import base64, os, sys
    from confluent_kafka import Producer
    servers, topic, end = sys.argv[1:]
    decoded = lambda text: None if text == "-" else base64.b64decode(text)
    producer = Producer({"bootstrap.servers": servers, "transactional.id": topic, "transaction.timeout.ms": 600000})
    producer.init_transactions(300)
    producer.begin_transaction()
    for line in sys.stdin.read().splitlines():
        key, value, partition, timestamp, *headers = line.split(" ")
        producer.produce(topic, key=decoded(key), value=decoded(value), partition=int(partition), timestamp=int(timestamp),
            headers=[(name, base64.b64decode(text)) for name, _, text in (each.partition("=") for each in headers if each)])
    if producer.flush(300) > 0:
        sys.exit("not all records were acknowledged")
    if end == "open":
        os._exit(0)
    (producer.commit_transaction if end == "committed" else producer.abort_transaction)(300)
    """
}
