import Kafka
import Worker

extension Admin {
  /// Counts the records of requests, the journal and events that an embedded broker has dropped; 0 on any other cluster.
  ///
  /// It keeps 5 MiB of each partition, and drops older records.
  func forgottenRecords(_ topics: Topics) async throws(KafkaError) -> Int64 {
    guard try await isEmbeddedBroker() else { return 0 }
    var count: Int64 = 0
    for topic in [topics.requests, topics.journal, topics.events] {
      // Offsets begin at 0 there, since its topics are neither deleted nor made again.
      for stretch in try await stretches(of: topic) { count += stretch.offsets.lowerBound }
    }
    return count
  }
}
