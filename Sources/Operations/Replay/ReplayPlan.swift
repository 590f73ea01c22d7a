public import JSON
import Notifications

/// The settings and the progress of a replay, which a file keeps for its continuation. A value.
public struct ReplayPlan: Sendable {
  /// The replay's name: hexadecimal digits, different for each replay.
  public let run: String
  /// The cluster's name for origins.
  public let cluster: String
  /// The brokers' id of the cluster; empty if they have none.
  public let brokers: String
  /// The topic to read.
  public let topic: String
  /// The topic to write, which is the same for `requests`.
  public let destination: String
  /// Selects the records.
  public let filter: ReplayFilter
  /// Their time of publication.
  public let published: TimeRange
  /// Whether it replays only unfinished requests, as new work.
  public let isOfUnfinished: Bool
  /// Whether it publishes new requests, with other ids and without their first place.
  public let isNew: Bool
  /// The progress of each partition.
  public var partitions: [ReplayedPartition]

  /// Makes a new replay.
  public init(
    run: String, cluster: String, brokers: String, topic: String, destination: String, filter: ReplayFilter, published: TimeRange,
    isOfUnfinished: Bool = false, isNew: Bool = false, partitions: [ReplayedPartition]
  ) {
    (self.run, self.cluster, self.brokers, self.topic, self.destination) = (run, cluster, brokers, topic, destination)
    self.isNew = isNew
    (self.filter, self.published, self.isOfUnfinished, self.partitions) = (filter, published, isOfUnfinished, partitions)
  }

  /// Whether it writes into the topic that it reads.
  public var isOfRequests: Bool { topic == destination }

  /// Whether effects are predicted. Unfinished requests are new work, and events have no effect.
  public var isForecast: Bool { isOfRequests && !isOfUnfinished }

  /// Whether it is complete.
  public var isComplete: Bool { partitions.allSatisfy(\.isComplete) }

  /// The counts of finished records.
  public var counts: ReplayCounts { partitions.reduce(ReplayCounts()) { $0 + $1.counts } }

  /// The offsets to read, and how many are done.
  public var progress: (done: Int64, total: Int64) {
    partitions.reduce((0, 0)) { sum, partition in
      (sum.0 + max(0, partition.done - partition.offsets.lowerBound), sum.1 + Int64(partition.offsets.count))
    }
  }
}

/// Why a replay cannot continue from a file.
public struct ReplayPlanError: Error, CustomStringConvertible, Sendable, Equatable {
  /// The reason, as the end of a sentence: "it has no …".
  public let description: String
}

extension ReplayPlan {
  /// The second layout has requests that become new ones. A program that knows only the first must not continue these as a replay.
  private static let (layout, layoutOfNew): (Int64, Int64) = (1, 2)
  /// No offset, number or time is greater, so sums do not overflow.
  static let highest: Int64 = 1 << 48

  /// The text of the file.
  public var json: JSONValue {
    var members: [JSONValue.Member] = [
      .init(key: "carillonReplay", value: .integer(isNew ? Self.layoutOfNew : Self.layout)), .init(key: "run", value: .string(run)),
      .init(key: "cluster", value: .string(cluster)), .init(key: "brokers", value: .string(brokers)),
      .init(key: "topic", value: .string(topic)), .init(key: "destination", value: .string(destination)),
      .init(key: "filter", value: filter.json), .init(key: "onlyUnfinished", value: .bool(isOfUnfinished)),
    ]
    if let from = published.from { members.append(.init(key: "from", value: .integer(from))) }
    if let to = published.to { members.append(.init(key: "to", value: .integer(to))) }
    let partitions = partitions.map { part -> JSONValue in
      var members: [JSONValue.Member] = [
        .init(key: "partition", value: .integer(Int64(part.partition))), .init(key: "from", value: .integer(part.offsets.lowerBound)),
        .init(key: "to", value: .integer(part.offsets.upperBound)), .init(key: "done", value: .integer(part.done)),
        .init(key: "written", value: .integer(part.written)), .init(key: "counts", value: part.counts.json),
      ]
      if let time = part.lastTimestamp { members.append(.init(key: "lastTimestamp", value: .integer(time))) }
      return .object(members)
    }
    members.append(.init(key: "partitions", value: .array(partitions)))
    return .object(members)
  }

  /// Reads the text of a file.
  public init(_ bytes: [UInt8]) throws(ReplayPlanError) {
    guard let json = try? JSONValue(parsing: String(decoding: bytes, as: UTF8.self)), let layout = json["carillonReplay"] else {
      throw ReplayPlanError(description: "it is not the file of a replay")
    }
    guard layout.integerValue == Self.layout || layout.integerValue == Self.layoutOfNew else {
      throw ReplayPlanError(description: "another version of this program has written it")
    }
    func text(_ key: String) throws(ReplayPlanError) -> String {
      guard let text = json[key]?.stringValue else { throw ReplayPlanError(description: "'\(key)' is missing or is not a text") }
      return text
    }
    func time(_ key: String) throws(ReplayPlanError) -> Int64? {
      guard let value = json[key] else { return nil }
      guard let time = value.integerValue, (0...Self.highest).contains(time) else {
        throw ReplayPlanError(description: "'\(key)' is not a time in milliseconds")
      }
      return time
    }
    run = try text("run")
    guard !run.isEmpty, run.utf8.count <= 64, run.allSatisfy(\.isHexDigit) else {
      throw ReplayPlanError(description: "'run' is not the name of a replay")
    }
    (cluster, brokers) = (try text("cluster"), try text("brokers"))
    (topic, destination) = (try text("topic"), try text("destination"))
    guard let value = json["filter"], let filter = ReplayFilter(value) else {
      throw ReplayPlanError(description: "'filter' is missing or wrong")
    }
    self.filter = filter
    guard let isOfUnfinished = json["onlyUnfinished"]?.boolValue else {
      throw ReplayPlanError(description: "'onlyUnfinished' is missing, or neither true nor false")
    }
    self.isOfUnfinished = isOfUnfinished
    isNew = layout.integerValue == Self.layoutOfNew
    published = TimeRange(from: try time("from"), to: try time("to"))
    partitions = []
    guard let elements = json["partitions"]?.elements else {
      throw ReplayPlanError(description: "'partitions' is missing or is not a list")
    }
    for element in elements {
      guard let part = ReplayedPartition(element), !partitions.contains(where: { $0.partition == part.partition }) else {
        throw ReplayPlanError(description: "'partitions' has an invalid or a repeated one")
      }
      partitions.append(part)
      guard partitions.count <= 100_000 else { throw ReplayPlanError(description: "'partitions' has more than 100,000") }
    }
  }
}

extension ReplayFilter {
  fileprivate var json: JSONValue {
    var members: [JSONValue.Member] = []
    func add(_ key: String, _ value: String?) { if let value { members.append(.init(key: key, value: .string(value))) } }
    add("application", application?.text)
    add("target", target?.text)
    add("id", id?.description)
    add("collapseId", collapseID?.text)
    add("pushType", pushType)
    let values = values.map { value -> JSONValue in ["pointer": .string(value.pointer.description), "value": value.value] }
    if !values.isEmpty { members.append(.init(key: "values", value: .array(values))) }
    return .object(members)
  }

  fileprivate init?(_ json: JSONValue) {
    guard json.members != nil else { return nil }
    (application, target) = (json["application"]?.nameValue, json["target"]?.nameValue)
    (collapseID, pushType) = (json["collapseId"]?.nameValue, json["pushType"]?.stringValue)
    if let text = json["id"] {
      guard let id = text.stringValue.flatMap({ NotificationID($0) }) else { return nil }
      self.id = id
    }
    for element in json["values"]?.elements ?? [] {
      guard let pointer = element["pointer"]?.stringValue.flatMap({ JSONPointer($0) }), let value = element["value"] else { return nil }
      values.append(PayloadValue(pointer, value))
    }
  }
}

extension ReplayCounts {
  /// As an object.
  public var json: JSONValue {
    [
      "read": .integer(read), "written": .integer(written), "bytes": .integer(bytes), "passedOver": .integer(passedOver),
      "ofReplays": .integer(ofReplays), "ofSchedules": .integer(ofSchedules), "fromElsewhere": .integer(fromElsewhere),
      "tooLarge": .integer(tooLarge), "applied": .integer(applied), "expired": .integer(expired), "rejected": .integer(rejected),
      "unknown": .integer(unknown),
    ]
  }

  fileprivate init?(_ json: JSONValue) {
    func count(_ key: String) -> Int64? { json[key]?.integerValue.flatMap { (0...ReplayPlan.highest).contains($0) ? $0 : nil } }
    guard let written = count("written"), let bytes = count("bytes"), let passedOver = count("passedOver"),
      let ofReplays = count("ofReplays"), let fromElsewhere = count("fromElsewhere"), let tooLarge = count("tooLarge")
    else { return nil }
    (self.written, self.bytes, self.passedOver) = (written, bytes, passedOver)
    (self.ofReplays, self.fromElsewhere, self.tooLarge) = (ofReplays, fromElsewhere, tooLarge)
    // Files of earlier versions lack these.
    (applied, expired, rejected) = (count("applied") ?? 0, count("expired") ?? 0, count("rejected") ?? 0)
    unknown = count("unknown") ?? written
    ofSchedules = count("ofSchedules") ?? 0
  }
}

extension ReplayedPartition {
  fileprivate init?(_ json: JSONValue) {
    guard let number = json["partition"]?.integerValue.flatMap({ Int32(exactly: $0) }), number >= 0,
      let from = json["from"]?.integerValue, let to = json["to"]?.integerValue, from >= 0, from <= to, to <= ReplayPlan.highest,
      let done = json["done"]?.integerValue, (from...to).contains(done), let written = json["written"]?.integerValue,
      (0...ReplayPlan.highest).contains(written),
      let counts = json["counts"].flatMap({ ReplayCounts($0) })
    else { return nil }
    self.init(number, from..<to, position: done, written: written, counts)
    lastTimestamp = json["lastTimestamp"]?.integerValue
  }
}
