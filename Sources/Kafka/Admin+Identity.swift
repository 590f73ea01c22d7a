import CRdKafka
import Glibc

extension Admin {
  /// Whether the cluster is an embedded broker, of this process or of another: it makes no topics by request, cannot find offsets by
  /// time, and cannot tell a topic's settings.
  public func isEmbeddedBroker() async throws(KafkaError) -> Bool {
    let timeout = timeoutMilliseconds
    return try await call("ask for the cluster's id") { client in Self.isEmbeddedBroker(client, timeout) }
  }

  /// The mock cluster of librdkafka calls itself so.
  static func isEmbeddedBroker(_ client: OpaquePointer, _ timeout: Int32) -> Bool {
    guard let id = rd_kafka_clusterid(client, timeout) else { return false }
    defer { free(id) }
    return String(cString: id).hasPrefix("mockCluster")
  }
}
