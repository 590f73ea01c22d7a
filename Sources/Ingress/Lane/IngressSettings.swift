package import EventLoop
package import HTTP
package import Kafka
package import Notifications
package import Worker

/// The settings of an ingress lane.
package struct IngressSettings: Sendable {
  /// The defaults, which the command line shares.
  package enum Defaults {
    /// The most connections.
    package static let connections = 1_000
    /// The most bytes of a body.
    package static let bodyBytes = 1 << 20
  }

  /// The cluster's topics.
  var topics: Topics
  /// The Kafka cluster.
  var kafka: KafkaConfiguration
  /// Where publishers connect.
  var listen: SocketAddress
  /// Its HTTP server: the TLS, the port, and the limits of connections, descriptors and bodies.
  package var server = HTTPServerConfiguration()
  /// Who may publish.
  var admission: PublisherAdmission
  /// The cluster's limits of requests.
  package var limits = RequestLimits()
  /// Whether each request is a line of the log.
  package var logsAccess = true
  /// How long Kafka may take to answer a question at the start, in milliseconds.
  var askMilliseconds: Int32 = 3_000

  /// How long a request waits for Kafka, and how long requests stay unread while Kafka is slow, in milliseconds. The sum is nearly the
  /// longest time to an answer, which is four seconds.
  var (answerMilliseconds, pauseMilliseconds) = (2_800, 1_000)
  /// How long connections may still send requests after the order to end, in milliseconds.
  var quietMilliseconds = 2_000
  /// How long Kafka's client tries to send a record. Longer than an answer takes: a broker may only be moving.
  var sendMilliseconds = 30_000
  /// The most records of the lane that Kafka has not acknowledged.
  var records = 20_000
  /// The most bytes of these, of the bodies that are being received, and of those that are not answered; each.
  var bytes = 32 << 20

  /// Settings with the defaults of the command line.
  package init(topics: Topics, kafka: KafkaConfiguration, listen: SocketAddress, admission: PublisherAdmission) {
    (self.topics, self.kafka, self.listen, self.admission) = (topics, kafka, listen, admission)
    (server.maximumConnections, server.maximumBodyBytes) = (Defaults.connections, Defaults.bodyBytes)
  }
}
