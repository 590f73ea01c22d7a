import CRdKafka
import Glibc

extension Admin {
  /// Whether the cluster is an embedded broker, of this process or of another.
  ///
  /// An embedded broker does not create topics by request, find offsets by time, or describe a topic's settings.
  public func isEmbeddedBroker() async throws(KafkaError) -> Bool {
    let timeout = timeoutMilliseconds
    return try await call("ask for the cluster's id") { client in
      guard let id = rd_kafka_clusterid(client, timeout) else { return false }
      defer { free(id) }
      return String(cString: id).hasPrefix("mockCluster")
    }
  }
}
