/// The names of the cluster's topics, all with one prefix.
public struct Topics: Sendable, Hashable {
  /// What all names begin with.
  public let prefix: String
  /// What producers publish; key: the target.
  public let requests: String
  /// Routed notifications; key: the device's token; a lane reads one partition.
  public let deliveries: String
  /// Compacted: the registrations; key: the device's token.
  public let devices: String
  /// What became of requests, and what people did; key: the device's token, else the target.
  public let events: String
  /// How requests were judged: for Carillon's own tools; no key, the partition of the requests that a record tells of.
  public let journal: String
  /// What could not be processed; key: as the source.
  public let deadLetters: String
  /// Compacted: the emergency stops of applications; key: the application.
  public let applications: String

  /// Names with a prefix, such as `notifications.`.
  public init(prefix: String = "notifications.") {
    self.prefix = prefix
    requests = prefix + "requests"
    deliveries = prefix + "deliveries"
    devices = prefix + "devices"
    events = prefix + "events"
    journal = prefix + "journal"
    deadLetters = prefix + "dead-letters"
    applications = prefix + "applications"
  }

  /// All of them.
  public var all: [String] { [requests, deliveries, devices, events, journal, deadLetters, applications] }

  /// What transform workers write to.
  public var writtenByTransform: [String] { [deliveries, events, journal, deadLetters] }

  /// What fan-out workers write to.
  public var writtenByFanOut: [String] { [deliveries, events, devices] }

  /// How many partitions a topic is created with, where most have so many.
  ///
  /// The stops of applications have one order, and a worker makes sure with one question that it knows all of them.
  public func partitions(of topic: String, most: Int) -> Int { topic == applications ? 1 : most }

  /// The settings that a topic is created with, beside partitions and copies.
  ///
  /// Requests carry the broker's time, so that no producer's clock decides which revision is the newest; devices keep the newest record
  /// of each key; so do applications, whose stops begin and end by the same clock; events carry the broker's time, so that an audit does not
  /// depend on the workers' clocks; deliveries are worthless after a short while, since the mailbox has what was not delivered.
  public func configuration(of topic: String) -> [String: String] {
    switch topic {
    case requests: ["message.timestamp.type": "LogAppendTime", "retention.ms": String(Self.longestRetention)]
    case deliveries: ["retention.ms": String(15 * 60 * 1000)]
    case devices: ["cleanup.policy": "compact"]
    case applications: ["cleanup.policy": "compact", "message.timestamp.type": "LogAppendTime"]
    case events: ["message.timestamp.type": "LogAppendTime", "retention.ms": String(Self.longestRetention)]
    case journal: ["retention.ms": String(Self.longestRetention + Self.day)]
    default: ["retention.ms": "-1"]
    }
  }

  /// How the settings of a topic differ from what it would be created with; what the broker does not tell is left out.
  public func differences(of topic: String, settings: [String: String]) -> [String] {
    var differences = configuration(of: topic).sorted { $0.key < $1.key }.compactMap { name, wanted -> String? in
      // Without it an audit finds less, and all else works.
      if topic == events, name == "message.timestamp.type" { return nil }
      guard let actual = settings[name], !Self.suffices(name, actual, for: wanted) else { return nil }
      // What that means nobody sees from the name.
      let meaning = name == "message.timestamp.type" ? ", so its producers' clocks decide which record is the newest" : ""
      return "has \(name)=\(actual), not \(wanted)\(meaning)"
    }
    // What producers may publish is the operator's own choice.
    if topic != requests, let bytes = settings["max.message.bytes"].flatMap({ Int($0) }), bytes < Self.neededBatchBytes {
      differences.append("has max.message.bytes=\(bytes), and one record may need \(Self.neededBatchBytes)")
    }
    return differences
  }

  /// To keep records longer than is needed is the operator's own choice.
  private static func suffices(_ name: String, _ actual: String, for wanted: String) -> Bool {
    guard name == "retention.ms", let actual = Int64(actual), let wanted = Int64(wanted) else { return actual == wanted }
    return actual < 0 || wanted >= 0 && actual >= wanted
  }

  /// 31 days: the longest lifetime of a notification and a day for the work on it. The journal is kept a day longer than what it tells of.
  public static let longestRetention: Int64 = 31 * day
  private static let day: Int64 = 24 * 60 * 60 * 1000
}
