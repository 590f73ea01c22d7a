public import Kafka
public import Notifications
public import Store
public import Worker

/// Where a load run publishes, and where its devices connect.
public struct LoadPlace: Sendable {
  /// Kafka.
  public var kafka: KafkaConfiguration
  /// The cluster's topics.
  public var topics: Topics
  /// Where devices connect: `ws://HOST:PORT/v1/device`. Devices are spread over them.
  public var urls: [String]
  /// Makes the credential of a device; nil for a cluster that takes any device.
  public var credential: (@Sendable (_ device: DeviceToken, _ application: Name, _ user: Name) -> String)?

  /// Where a run asks for the processor time and the stages that it cannot see by itself.
  public struct Servers: Sendable {
    /// The workers' admin servers, as URLs. If there are none, those that have reported themselves to Redis are asked.
    public var admins: [String]
    /// Redis; nil if it cannot be reached from here.
    public var store: StoreConfiguration?

    /// Makes it from its parts.
    public init(admins: [String] = [], store: StoreConfiguration? = nil) { (self.admins, self.store) = (admins, store) }
  }

  /// The servers that are asked while a run goes on.
  public var servers = Servers()

  /// Makes it from its parts.
  public init(
    kafka: KafkaConfiguration, topics: Topics, urls: [String],
    credential: (@Sendable (_ device: DeviceToken, _ application: Name, _ user: Name) -> String)? = nil
  ) {
    (self.kafka, self.topics, self.urls, self.credential) = (kafka, topics, urls, credential)
  }
}

/// Why a load run must not begin, or cannot go on.
public enum LoadRefusal: Error, Sendable, Equatable {
  /// The topic that marks a cluster for load is missing, and no cluster id was given.
  case notForLoad(topic: String, cluster: String)
  /// The given id is not that of this cluster.
  case otherCluster(String, given: String)
  /// Devices of a run with this name are registered.
  case runExists(String, devices: Int)
  /// The devices cannot connect: why, and how many are connected.
  case noDevices(String, connected: Int, of: Int)
  /// The processes of a run need this topic to agree, and it is missing.
  case noTopic(String)
  /// Processes cannot agree on a run with this name.
  case shared(String, SharedProblem)

  /// Why a process cannot begin a run with others, join it, or go on with it.
  public enum SharedProblem: Sendable, Equatable {
    /// A run with this name has begun, and is not over.
    case isUnderWay
    /// Nobody has begun it in so many milliseconds.
    case isAbsent(waited: Int)
    /// It is over.
    case isOver
    /// It has started without this process.
    case hasStarted
    /// So many processes take part, as many as it is for.
    case isFull(Int)
    /// Its plan has another version than this program.
    case isForeign(version: Int64, own: Int64)
    /// So many processes were not ready in so many milliseconds: their names, without those that never joined.
    case notReady([Name], missing: Int, waited: Int)
    /// The share of this process was taken back, since it was silent.
    case wasRemoved
    /// The first process is silent.
    case firstIsSilent
    /// The run was ended for this reason, by its first process or by `carillon load clean`.
    case wasEnded(String)
    /// Somebody has ended this process before the start.
    case wasStopped
    /// The start is so many milliseconds away, which must be a difference of the machines' clocks.
    case clocksDiffer(milliseconds: Int64)
  }
}

extension LoadPlace {
  /// Whether the cluster has the topic that marks it for load.
  public var hasTopic: Bool {
    get async throws {
      try await Admin.with(kafka) { try await $0.describeCluster() }.topics[topics.load] != nil
    }
  }

  /// Checks that the cluster is marked for load, or that its id was given.
  ///
  /// - Parameters:
  ///   - production: the id of the cluster, as the person gave it.
  ///   - isShared: whether the topic is needed in any case.
  /// - Returns: whether the topic is there.
  /// - Throws: ``LoadRefusal``, or Kafka's error.
  @discardableResult
  public func checkMark(production: String?, isShared: Bool) async throws -> Bool {
    let cluster = try await Admin.with(kafka) { try await $0.describeCluster() }
    let id = cluster.id ?? ""
    if let production {
      guard production == id else { throw LoadRefusal.otherCluster(id, given: production) }
      let hasTopic = cluster.topics[topics.load] != nil
      guard hasTopic || !isShared else { throw LoadRefusal.noTopic(topics.load) }
      return hasTopic
    }
    guard cluster.topics[topics.load] != nil else { throw LoadRefusal.notForLoad(topic: topics.load, cluster: id) }
    return true
  }
}
