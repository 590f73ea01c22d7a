import Foundation
import Kafka
import Testing

extension KafkaFixture {
  /// Adds partitions to a topic, as an administrator does with the brokers' own tool, and waits until each of them has a leader. On a real
  /// Kafka, by its Python client.
  ///
  /// - Parameter total: the number of partitions afterwards.
  public func addPartitions(to topic: String, total: Int) async throws {
    let script = """
      import sys
      from confluent_kafka.admin import AdminClient, NewPartitions
      servers, topic, total = sys.argv[1:]
      admin = AdminClient({"bootstrap.servers": servers})
      admin.create_partitions([NewPartitions(topic, int(total))])[topic].result(60)
      """
    try await CarillonCommand.with { command in
      let result = try await command.run(
        [try command.file("partitions.py", script), configuration.bootstrapServers.joined(separator: ","), topic, "\(total)"],
        program: URL(fileURLWithPath: ClusterFixture.python ?? ""))
      if result.status != 0 { throw CommandFailure(description: "no partitions were added: \(result.errors)") }
    }
    await eventually("each partition has a leader") {
      let partitions = try await admin.describe(topic: topic).partitions
      return partitions.count >= total && partitions.allSatisfy { $0.leader >= 0 }
    }
  }
}
