/// The names of the cluster's topics, all with one prefix.
public struct Topics: Sendable, Hashable {
  /// The beginning of all names.
  public let prefix: String
  /// Requests of producers; key: the target.
  public let requests: String
  /// Delivery records; key: the device's token. A lane reads one partition.
  public let deliveries: String
  /// Registrations, compacted; key: the device's token.
  public let devices: String
  /// Outcomes of requests, and responses of people; key: the device's token, else the target.
  public let events: String
  /// How requests were judged, for Carillon's own tools. No key; the partition is that of the requests.
  public let journal: String
  /// Records that could not be processed; key: that of the source.
  public let deadLetters: String
  /// Stops of applications, compacted; key: the application.
  public let applications: String
  /// How schedules stand, compacted; key: application, target and identifier.
  public let schedule: String
  /// Settings of people for all of their devices, compacted; key: the user.
  public let people: String
  /// Categories that were published for applications, compacted; key: the application.
  public let categories: String
  /// Marks a cluster as one for load by its existence; nothing is written to it. It is not among ``all``, since only clusters for load have it.
  public let load: String

  /// Makes the names with a prefix, such as `notifications.`.
  public init(prefix: String = "notifications.") {
    self.prefix = prefix
    requests = prefix + "requests"
    deliveries = prefix + "deliveries"
    devices = prefix + "devices"
    events = prefix + "events"
    journal = prefix + "journal"
    deadLetters = prefix + "dead-letters"
    applications = prefix + "applications"
    schedule = prefix + "schedule"
    people = prefix + "people"
    categories = prefix + "categories"
    load = prefix + "load"
  }

  /// All topics.
  public var all: [String] { [requests, deliveries, devices, schedule, events, journal, deadLetters, applications, people, categories] }

  /// The topics that transform workers write.
  public var writtenByTransform: [String] { [requests, deliveries, schedule, events, journal, deadLetters] }

  /// The topics that fan-out workers write.
  public var writtenByFanOut: [String] { [deliveries, events, devices, people] }

  /// The topics that the ingress writes.
  public var writtenByIngress: [String] { [requests] }

  /// Whether a topic has one partition: few records are written to it, and they need one order.
  public func hasOnePartition(_ topic: String) -> Bool { topic == applications || topic == categories || topic == load }

  /// The number of partitions to create a topic with, given that of most topics.
  public func partitions(of topic: String, most: Int) -> Int { hasOnePartition(topic) ? 1 : most }

  /// The settings to create a topic with, besides partitions and copies.
  ///
  /// Requests have the broker's time, so that no producer's clock decides which revision is the newest. They are stored uncompressed: a worker
  /// that fetches them must not meet a batch of some kilobytes that becomes gigabytes. Events have it, so that an audit
  /// does not depend on the workers' clocks. Applications have it, so that stops begin and end by one clock. Devices, applications, people
  /// and categories keep the newest record of each key. So do schedules, whose ends are kept longer than a request lives, so that no worker
  /// starts one anew. Deliveries are worthless after a short while, since the mailbox has every undelivered notification.
  public func configuration(of topic: String) -> [String: String] {
    switch topic {
    case requests:
      ["compression.type": "uncompressed", "message.timestamp.type": "LogAppendTime", "retention.ms": String(Self.longestRetention)]
    case deliveries: ["retention.ms": String(15 * 60 * 1000)]
    case devices, people, categories: ["cleanup.policy": "compact"]
    case applications: ["cleanup.policy": "compact", "message.timestamp.type": "LogAppendTime"]
    case schedule: ["cleanup.policy": "compact", "delete.retention.ms": String(Self.longestRetention + Self.day)]
    case events: ["message.timestamp.type": "LogAppendTime", "retention.ms": String(Self.longestRetention)]
    case journal: ["retention.ms": String(Self.longestRetention + Self.day)]
    case load: [:]
    default: ["retention.ms": "-1"]
    }
  }

  /// Describes how the settings of a topic differ from `configuration`. Settings that the broker does not tell are left out.
  public func differences(of topic: String, settings: [String: String]) -> [String] {
    var differences = configuration(of: topic).sorted { $0.key < $1.key }.compactMap { name, wanted -> String? in
      // Without it an audit finds less. Everything else works.
      if topic == events, name == "message.timestamp.type" { return nil }
      guard let actual = settings[name], !Self.suffices(name, actual, for: wanted) else { return nil }
      // The names do not show what this means.
      let meaning =
        switch name {
        case "message.timestamp.type": ", so its producers' clocks decide which record is the newest"
        case "compression.type": ", so a small batch of a producer may become larger than a worker's memory"
        default: ""
        }
      return "has \(name)=\(actual), not \(wanted)\(meaning)"
    }
    // The operator decides how large the requests of producers may be.
    if topic != requests, let bytes = settings["max.message.bytes"].flatMap({ Int($0) }), bytes < Self.neededBatchBytes {
      differences.append("has max.message.bytes=\(bytes), and one record may need \(Self.neededBatchBytes)")
    }
    return differences
  }

  /// The operator may decide to keep records longer than needed.
  private static func suffices(_ name: String, _ actual: String, for wanted: String) -> Bool {
    guard name == "retention.ms" || name == "delete.retention.ms", let actual = Int64(actual), let wanted = Int64(wanted) else {
      return actual == wanted
    }
    return actual < 0 || wanted >= 0 && actual >= wanted
  }

  /// 31 days: the longest lifetime of a notification, and a day to process it. The journal is kept a day longer than its requests.
  public static let longestRetention: Int64 = 31 * day
  private static let day: Int64 = 24 * 60 * 60 * 1000
}
