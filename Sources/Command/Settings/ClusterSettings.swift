import Cryptography
import EventLoop
import Kafka
import Notifications
import Redis
import Store
import Worker

/// The addresses of Kafka and Redis, and the cluster's names. They are settings of every command that uses a cluster.
enum ClusterSettings {
  static let kafka = Setting<[SocketAddress]?>(
    "kafka", .addresses, "Kafka's bootstrap servers. Absent: those of a 'carillon up' that runs on this machine.")
  static let redis = Setting<String?>(
    "redis", .string("ADDRESS"), isSecret: true,
    "Redis: HOST:PORT, redis://[user:password@]host[:port][/db], rediss:// for TLS, or the path of a socket. Absent: that of a 'carillon up' on this machine."
  )
  static let redisAuthorities = Setting<String?>(
    "redis.ca", flag: "redis-ca", .file,
    "The certificates in PEM that the certificate of a rediss:// must have been signed by. Absent: those that this machine trusts.")
  static let redisCertificate = Setting<String?>(
    "redis.certificate", flag: "redis-certificate", .file,
    "The certificate in PEM for a rediss:// that asks its clients for one, followed by those that have signed it. Absent: none.")
  static let redisKey = Setting<String?>(
    "redis.key", flag: "redis-key", .file, "The private key of --redis-certificate, in PEM and without a passphrase.")
  static let topicPrefix = Setting(
    "topics.prefix", flag: "topic-prefix", .topicPrefix, default: "notifications.", "The prefix of all topics' names.")
  static let defaultName = "carillon"
  static let name = Setting(
    "cluster", .clusterName, default: defaultName, "The cluster's name in events (ce_source: /carillon/NAME).")
  static let buckets = Setting(
    "redis.buckets", flag: "buckets", .integer(1...16384), default: StoreConfiguration.standardBuckets,
    "The number of buckets for the keys in Redis. The same everywhere, and never changed in a cluster's life.")
  static let kafkaProperties = PassedOnSettings(
    prefix: "kafka", "A property of librdkafka, for all its clients: security.protocol, sasl.password, compression.type and so on."
  ) { KafkaConfiguration.hasProperty($0) }

  /// The files of TLS with Redis: for each command that has its address.
  static let redisFiles: [any DeclaredSetting] = [redisAuthorities, redisCertificate, redisKey]
  /// For commands that only need Kafka.
  static let kafkaGroup = SettingGroup("Cluster", [kafka], advanced: [topicPrefix, kafkaProperties])
  /// For commands that only need Redis.
  static let redisGroup = SettingGroup("Cluster", [redis], advanced: [buckets] + redisFiles)
  /// For commands that need both.
  static let group = SettingGroup("Cluster", [kafka, redis], advanced: [topicPrefix, name, buckets] + redisFiles + [kafkaProperties])

  static func topics(_ values: SettingValues) -> Topics { Topics(prefix: values[topicPrefix]) }

  /// The given Kafka, or that of a running `carillon up`.
  static func kafka(_ values: SettingValues, client: String) throws(UsageError) -> KafkaConfiguration {
    let properties = values[kafkaProperties]
    if let servers = values[kafka] {
      return KafkaConfiguration(bootstrapServers: servers.map(\.description), clientID: client, properties: properties)
    }
    guard let running = RunningCluster.find() else {
      throw UsageError(
        .missing, "no Kafka: start 'carillon up' on this machine, or give --kafka HOST:PORT (or \(kafka.declaration.environment))")
    }
    return running.kafka(client: client).merging(properties)
  }

  /// The given Kafka and Redis, or both of a running `carillon up`, but never one of each.
  static func kafkaAndRedis(_ values: SettingValues, client: String) throws(UsageError) -> (KafkaConfiguration, RedisAddress) {
    guard (values[kafka] == nil) == (values[redis] == nil) else {
      let (given, missing) = values[kafka] == nil ? ("--redis", "--kafka") : ("--kafka", "--redis")
      throw UsageError(.missing, "\(given) is given but \(missing) is not: give both, or neither to use a running 'carillon up'")
    }
    guard let address = try address(values) else {
      throw UsageError(
        .missing, "no Kafka and no Redis: start 'carillon up' on this machine, or give --kafka HOST:PORT and --redis HOST:PORT")
    }
    return (try kafka(values, client: client), address)
  }

  /// The given Redis, or that of a running `carillon up`; nil if only a Kafka is given.
  static func redisIfKnown(_ values: SettingValues, client: String) throws(UsageError) -> RedisAddress? {
    values[kafka] != nil && values[redis] == nil ? nil : try kafkaAndRedis(values, client: client).1
  }

  /// The given Redis, or that of a running `carillon up`.
  static func store(_ values: SettingValues) throws(UsageError) -> StoreConfiguration {
    guard let address = try address(values) else {
      throw UsageError(
        .missing, "no Redis: start 'carillon up' on this machine, or give --redis HOST:PORT (or \(redis.declaration.environment))")
    }
    return StoreConfiguration(address, buckets: values[buckets])
  }

  private static func address(_ values: SettingValues) throws(UsageError) -> RedisAddress? {
    guard let text = values[redis] ?? RunningCluster.find()?.redis else { return nil }
    var address: RedisAddress
    do throws(RedisError) { address = try RedisAddress(text) } catch {
      throw UsageError(.wrongValue, "\(values.source(of: redis)): \(error.message)")
    }
    let files = RedisTLS(
      authorities: try values.file(redisAuthorities, limit: SettingValues.certificateBytes)?.bytes,
      identity: try values.identity(redisCertificate, redisKey)?.identity)
    // A running 'carillon up' has a Redis without TLS, whatever the environment says of another one.
    if address.tls == nil, files == RedisTLS() || values[redis] == nil { return address }
    guard address.tls != nil else {
      throw UsageError(.contradiction, "--redis-ca and --redis-certificate need an address of Redis that begins with rediss://")
    }
    do throws(TLSError) { try files.check() } catch {
      throw UsageError(.wrongValue, "\(values.name(of: redisAuthorities)): \(error)")
    }
    address.tls = files
    return address
  }
}

/// The addresses of a cluster, and its names.
struct ClusterPlace: Sendable {
  var topics: Topics
  var kafka: KafkaConfiguration
  var store: StoreConfiguration
  var name: String
}

extension ClusterPlace {
  /// The given ones, or those of a running `carillon up`.
  init(_ values: SettingValues, client: String) throws(UsageError) {
    let (kafka, redis) = try ClusterSettings.kafkaAndRedis(values, client: client)
    self.init(
      topics: ClusterSettings.topics(values), kafka: kafka,
      store: StoreConfiguration(redis, buckets: values[ClusterSettings.buckets]), name: values[ClusterSettings.name])
  }
}

extension SettingKind where Value == String {
  /// The prefix of the Kafka topics' names.
  fileprivate static var topicPrefix: SettingKind { name("PREFIX", longest: 200) }

  /// A name that needs no escapes in a URI reference.
  fileprivate static var clusterName: SettingKind { name("NAME", longest: 64) }

  private static func name(_ placeholder: String, longest: Int) -> SettingKind {
    SettingKind(
      placeholder: placeholder, allowed: "1 to \(longest) letters, digits, full stops, hyphens and underscores",
      read: { (1...longest).contains($0.utf8.count) && $0.utf8.allSatisfy(ApplicationTopic.isNameByte) ? $0 : nil })
  }
}
