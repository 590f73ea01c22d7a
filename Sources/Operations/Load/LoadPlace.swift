package import Kafka
package import Notifications
package import Store
package import Worker

/// Where a load run publishes, and where its devices connect.
package struct LoadPlace: Sendable {
  /// Kafka.
  package var kafka: KafkaConfiguration
  /// The cluster's topics.
  package var topics: Topics
  /// Where devices connect: `ws://HOST:PORT/v1/device`. Devices are spread over them.
  package var urls: [String]
  /// The certificates in PEM that the cluster's must have been signed by; nil for those of the system.
  package var authorities: [UInt8]?
  /// Makes the credential of a device; nil for a cluster that takes any device.
  package var credential: (@Sendable (_ device: DeviceToken, _ application: Name, _ user: Name) -> String)?

  /// The workers' admin servers, as URLs, which are asked for processor time and stages. If there are none, those that have reported
  /// themselves to Redis are asked.
  package var admins: [String] = []
  /// Redis; nil if it cannot be reached from here.
  package var store: StoreConfiguration?

  /// Makes it from its parts.
  package init(kafka: KafkaConfiguration, topics: Topics, urls: [String]) {
    (self.kafka, self.topics, self.urls) = (kafka, topics, urls)
  }
}

/// Why a load run must not begin, or cannot go on.
package enum LoadRefusal: Error, Sendable, Equatable {
  /// The topic that marks a cluster for load is missing, and no cluster id was given.
  case notForLoad(topic: String, cluster: String)
  /// The given id is not that of this cluster.
  case otherCluster(String, given: String)
  /// Devices of a run with this name are registered.
  case runExists(String, devices: Int)
  /// The devices cannot connect: why, and how many are connected.
  case noDevices(String, connected: Int, of: Int)
  /// The run was to begin so many milliseconds ago.
  case late(milliseconds: Int64)
  /// The cluster's clock is ahead of this machine's by so many milliseconds.
  case clockDiffers(milliseconds: Int64)
}

extension LoadPlace {
  /// Checks that the cluster is marked for load, or that its id was given.
  ///
  /// - Parameter production: the id of the cluster, as the person gave it.
  /// - Throws: ``LoadRefusal``, or Kafka's error.
  package func checkMark(production: String?) async throws {
    let cluster = try await Admin.with(kafka) { try await $0.describeCluster() }
    let id = cluster.id ?? ""
    if let production {
      guard production == id else { throw LoadRefusal.otherCluster(id, given: production) }
    } else if cluster.topics[topics.load] == nil {
      throw LoadRefusal.notForLoad(topic: topics.load, cluster: id)
    }
  }
}
