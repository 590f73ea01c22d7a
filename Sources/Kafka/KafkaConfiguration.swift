import CRdKafka
import Cryptography

/// Where Kafka is, and how its clients are set.
public struct KafkaConfiguration: Sendable {
  /// `HOST:PORT` of some brokers; the others are found through them.
  public var bootstrapServers: [String]
  /// How this client calls itself in the brokers' logs and quotas.
  public var clientID: String
  /// Any of librdkafka's properties by their names; they win over what this module sets by itself.
  public var properties: [String: String]
  /// How often `onStatistics` gets librdkafka's statistics, in milliseconds; 0 for never.
  public var statisticsIntervalMilliseconds: Int

  /// Makes a configuration; nothing is checked before a client is made with it.
  public init(
    bootstrapServers: [String], clientID: String = "carillon", properties: [String: String] = [:], statisticsIntervalMilliseconds: Int = 0
  ) {
    self.bootstrapServers = bootstrapServers
    self.clientID = clientID
    self.properties = properties
    self.statisticsIntervalMilliseconds = statisticsIntervalMilliseconds
  }

  /// The same with further properties, which win.
  public func merging(_ properties: [String: String]) -> KafkaConfiguration {
    var copy = self
    copy.properties.merge(properties) { $1 }
    return copy
  }

  /// Properties that the other role's clients know and this one's do not: librdkafka warns of each, so they are left out.
  private static let consumerOnly = [
    "fetch.", "queued.", "max.poll.", "auto.offset.reset", "session.timeout.ms", "heartbeat.interval.ms", "group.", "partition.assignment.",
    "allow.auto.create.",
  ]

  /// Makes librdkafka's object of it: `defaults` first, then the fields, then the user's properties.
  func object(defaults: [String: String], forConsumer: Bool) throws(KafkaError) -> ConfigurationObject {
    let object = ConfigurationObject()
    var merged = defaults
    merged["bootstrap.servers"] = bootstrapServers.joined(separator: ",")
    merged["client.id"] = clientID
    merged["log.queue"] = "true"
    if statisticsIntervalMilliseconds > 0 { merged["statistics.interval.ms"] = String(statisticsIntervalMilliseconds) }
    for (name, value) in properties {
      let belongs = forConsumer || !Self.consumerOnly.contains { name.hasPrefix($0) }
      // Set all the same on an object that is thrown away, so that a misspelt one is found by every client.
      try belongs ? (merged[name] = value) : ConfigurationObject().set(name, value)
    }
    if merged["bootstrap.servers"]?.isEmpty != false {
      throw KafkaError(.invalidConfiguration, "set bootstrap.servers", message: "no broker is named")
    }
    for (name, value) in merged.sorted(by: { $0.key < $1.key }) { try object.set(name, value) }
    return object
  }
}

/// One librdkafka configuration object: owned here until a client takes it.
final class ConfigurationObject {
  private(set) var pointer: OpaquePointer?

  init() {
    // Every client and every broker needs a configuration first.
    OpenSSL.prepare()
    pointer = rd_kafka_conf_new()
  }

  /// librdkafka has taken the object over.
  func release() { pointer = nil }

  func set(_ name: String, _ value: String) throws(KafkaError) {
    let reason: String? = withUnsafeTemporaryAllocation(of: CChar.self, capacity: 512) { text in
      guard let address = text.baseAddress else { return "no memory" }
      address.pointee = 0
      return rd_kafka_conf_set(pointer, name, value, address, text.count) == RD_KAFKA_CONF_OK ? nil : String(cString: address)
    }
    guard let reason else { return }
    // librdkafka repeats the value, which may be a password.
    let isSecret = ["password", "secret", ".pem", "key.", "jaas", "oauthbearer", "token"].contains { name.contains($0) }
    throw KafkaError(
      .invalidConfiguration, "set Kafka property \(name)",
      message: isSecret ? "the value is not allowed (not shown: it may be secret)" : reason)
  }

  deinit { if let pointer { rd_kafka_conf_destroy(pointer) } }
}
