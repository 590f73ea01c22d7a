import CRdKafka
import Cryptography

/// Where Kafka is, and the settings of its clients.
public struct KafkaConfiguration: Sendable {
  /// `HOST:PORT` of some brokers. Clients find the others through them.
  public var bootstrapServers: [String]
  /// The client's name in the brokers' logs and quotas.
  public var clientID: String
  /// Any of librdkafka's properties by their names. They override the settings of this module.
  public var properties: [String: String]

  /// Makes a configuration. The first client checks it.
  public init(bootstrapServers: [String], clientID: String = "carillon", properties: [String: String] = [:]) {
    self.bootstrapServers = bootstrapServers
    self.clientID = clientID
    self.properties = properties
  }

  /// Adds properties, which override those of the same name.
  public func merging(_ properties: [String: String]) -> KafkaConfiguration {
    var copy = self
    copy.properties.merge(properties) { $1 }
    return copy
  }

  /// Whether librdkafka has a property.
  ///
  /// It does not know the value of one that is not set, so the property is set.
  public static func hasProperty(_ name: String) -> Bool {
    let object = ConfigurationObject()
    return withExtendedLifetime(object) { rd_kafka_conf_set($0.pointer, name, "", nil, 0) != RD_KAFKA_CONF_UNKNOWN }
  }

  /// Properties of one kind of client only. librdkafka warns of them in the other kind, so they are left out there.
  private static let consumerOnly = [
    "fetch.", "queued.", "max.poll.", "auto.offset.reset", "session.timeout.ms", "heartbeat.interval.ms", "group.", "partition.assignment.",
    "allow.auto.create.",
  ]

  /// Makes librdkafka's object: `defaults` first, then the fields, then the user's properties.
  func object(defaults: [String: String], forConsumer: Bool) throws(KafkaError) -> ConfigurationObject {
    let object = ConfigurationObject()
    var merged = defaults
    merged["bootstrap.servers"] = bootstrapServers.joined(separator: ",")
    merged["client.id"] = clientID
    merged["log.queue"] = "true"
    for (name, value) in properties {
      let belongs = forConsumer || !Self.consumerOnly.contains { name.hasPrefix($0) }
      // The property is set on a temporary object too, so that every client finds a misspelt one.
      try belongs ? (merged[name] = value) : ConfigurationObject().set(name, value)
    }
    if merged["bootstrap.servers"]?.isEmpty != false {
      throw KafkaError(.invalidConfiguration, "set bootstrap.servers", message: "no broker is named")
    }
    for (name, value) in merged.sorted(by: { $0.key < $1.key }) { try object.set(name, value) }
    return object
  }
}

/// One librdkafka configuration object, owned here until a client takes it.
final class ConfigurationObject {
  private(set) var pointer: OpaquePointer?

  init() {
    // Every client and every broker needs a configuration first, so OpenSSL is ready by then.
    OpenSSL.prepare()
    pointer = rd_kafka_conf_new()
  }

  /// Notes that librdkafka has taken ownership of the object.
  func release() { pointer = nil }

  /// Leaves out the log, for a client whose log nobody would read. Its calls report their errors.
  func leaveOutLog() throws(KafkaError) {
    try set("log.queue", "false")
    rd_kafka_conf_set_log_cb(pointer, nil)
  }

  func set(_ name: String, _ value: String) throws(KafkaError) {
    let reason: String? = withUnsafeTemporaryAllocation(of: CChar.self, capacity: 512) { text in
      guard let address = text.baseAddress else { return "no memory" }
      address.pointee = 0
      return rd_kafka_conf_set(pointer, name, value, address, text.count) == RD_KAFKA_CONF_OK ? nil : String(cString: address)
    }
    guard let reason else { return }
    // librdkafka's reason contains the value, which may be a password.
    let isSecret = ["password", "secret", ".pem", "key.", "jaas", "oauthbearer", "token"].contains { name.contains($0) }
    throw KafkaError(
      .invalidConfiguration, "set Kafka property \(name)",
      message: isSecret ? "the value is not allowed (not shown: it may be secret)" : reason)
  }

  deinit { if let pointer { rd_kafka_conf_destroy(pointer) } }
}
