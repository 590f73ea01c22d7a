package import JSON
package import Kafka
import Notifications
import Worker

/// The selection and the progress of a replay, which a file keeps for its continuation. A value.
package struct ReplayPlan: Sendable {
  /// The replay's name: hexadecimal digits, different for each replay.
  package let run: String
  /// The cluster's name for origins.
  package let cluster: String
  /// The brokers' id of the cluster; empty if they have none.
  package let brokers: String
  /// The topic of the requests.
  package let topic: String
  /// The wanted records. ``partitions`` have its places.
  package let selection: ReplaySelection
  /// The progress of each partition.
  package var partitions: [ReplayedPartition]

  /// Whether it is complete.
  package var isComplete: Bool { partitions.allSatisfy(\.isComplete) }

  /// The counts of finished records.
  package var counts: RunCounts { partitions.reduce(RunCounts()) { $0 + $1.counts } }

  /// The offsets that are done, of those to read.
  func progress(_ what: String) -> ReadingProgress {
    partitions.reduce(into: ReadingProgress(what: what, read: 0, total: 0)) { sum, partition in
      sum.read += max(0, partition.done - partition.offsets.lowerBound)
      sum.total += Int64(partition.offsets.count)
    }
  }

  /// What has become of it so far.
  package var report: RunReport { RunReport(counts: counts, isComplete: isComplete) }
}

/// The records that the user wants to replay, and what becomes of them.
package struct ReplaySelection: Sendable {
  /// The partitions; nil for all.
  package var partitions: Set<Int32>?
  /// Only these offsets of these partitions; nil for all.
  package var offsets: [Int32: Range<Int64>]?
  /// The time of publication.
  package var published = TimeRange()
  /// Selects the requests.
  package var filter = ReplayFilter()
  /// Whether only unfinished requests are replayed.
  package var isOfUnfinished = false
  /// Whether they become new requests.
  package var isNew = false

  /// Makes a selection of a whole topic.
  package init() {}

  /// Whether effects are predicted. Unfinished requests and new ones are new work.
  package var isForecast: Bool { !isNew && !isOfUnfinished }
}

/// Why a replay is refused.
package enum ReplayRefusal: Error, Sendable, Equatable {
  /// There is no such partition. `count` is the number of partitions.
  case noPartition(TopicPartition, count: Int)
  /// The wanted offsets begin before the oldest record.
  case gone(TopicPartition, wanted: Range<Int64>, oldest: Int64)
  /// The wanted offsets end after the newest record.
  case notYetThere(TopicPartition, wanted: Range<Int64>, end: Int64)
  /// Another cluster has begun the replay.
  case otherCluster
  /// The topic was made again after the replay began.
  case topicMadeAgain(String)
}

// MARK: Its beginning and its continuation

extension ReplayPlan {
  /// Makes a plan up to the present ends of the topic.
  ///
  /// - Parameter run: the replay's name.
  package init(_ selection: ReplaySelection, of topic: String, run: String, cluster: String, _ admin: Admin) async throws {
    let brokers = try await admin.describeCluster().id ?? ""
    let stretches = try await admin.stretches(of: topic, selection.published)
    for number in (selection.partitions ?? []).union((selection.offsets ?? [:]).keys) where !stretches.indices.contains(Int(number)) {
      throw ReplayRefusal.noPartition(TopicPartition(topic, number), count: stretches.count)
    }
    let logs = try await admin.ends(of: stretches.map(\.partition))
    var partitions: [ReplayedPartition] = []
    for stretch in stretches {
      let (partition, number) = (stretch.partition, stretch.partition.partition)
      guard selection.partitions?.contains(number) ?? true, let log = logs[partition] else { continue }
      var offsets = stretch.offsets
      if let wanted = selection.offsets {
        guard let range = wanted[number] else { continue }
        guard range.lowerBound >= log.lowerBound else { throw ReplayRefusal.gone(partition, wanted: range, oldest: log.lowerBound) }
        guard range.upperBound <= log.upperBound else { throw ReplayRefusal.notYetThere(partition, wanted: range, end: log.upperBound) }
        offsets = offsets.clamped(to: range)
      }
      partitions.append(ReplayedPartition(number, offsets, end: log.upperBound))
    }
    self.init(run: run, cluster: cluster, brokers: brokers, topic: topic, selection: selection, partitions: partitions)
  }

  /// Checks whether the replay can continue, and skips records that were deleted meanwhile.
  ///
  /// - Returns: the number of skipped records.
  package mutating func prepareToGoOn(_ admin: Admin) async throws -> Int64 {
    guard try await admin.describeCluster().id ?? "" == brokers else { throw ReplayRefusal.otherCluster }
    let count = try await admin.describe(topic: topic).partitions.count
    if let missing = partitions.first(where: { $0.partition >= count }) {
      throw ReplayRefusal.noPartition(TopicPartition(topic, missing.partition), count: count)
    }
    let logs = try await admin.ends(of: partitions.map { TopicPartition(topic, $0.partition) })
    var leftOut: Int64 = 0
    for place in partitions.indices where !partitions[place].isComplete {
      let part = partitions[place]
      guard let log = logs[TopicPartition(topic, part.partition)] else { continue }
      guard max(part.offsets.upperBound, part.written) <= log.upperBound else { throw ReplayRefusal.topicMadeAgain(topic) }
      guard log.lowerBound > part.done else { continue }
      leftOut += min(log.lowerBound, part.offsets.upperBound) - part.done
      partitions[place].leaveOut(below: log.lowerBound)
    }
    return leftOut
  }
}

// MARK: Its file

/// Why a replay cannot continue from a file.
package struct ReplayPlanError: Error, CustomStringConvertible, Sendable, Equatable {
  /// The reason, as the end of a sentence: "it has no …".
  package let description: String
}

extension ReplayPlan {
  /// Programs before this layout replayed other topics as well, and knew other conditions.
  private static let layout: Int64 = 3
  /// No offset, number or time is greater, so sums do not overflow.
  static let highest: Int64 = 1 << 48

  /// The text of the file.
  package var json: JSONValue {
    JSONValue.object(present: [
      "carillonReplay": Self.layout, "run": run, "cluster": cluster, "brokers": brokers, "topic": topic, "filter": selection.filter.json,
      "onlyUnfinished": selection.isOfUnfinished, "asNew": selection.isNew, "from": selection.published.from,
      "to": selection.published.to, "partitions": partitions.map(\.json),
    ])
  }

  /// Reads the text of a file.
  package init(_ bytes: [UInt8]) throws(ReplayPlanError) {
    guard let json = try? JSONValue(parsing: String(decoding: bytes, as: UTF8.self)), let layout = json["carillonReplay"] else {
      throw ReplayPlanError(description: "it is not the file of a replay")
    }
    guard layout.integerValue == Self.layout else {
      throw ReplayPlanError(description: "another version of this program has written it")
    }
    func member<Value>(_ key: String, _ value: Value?) throws(ReplayPlanError) -> Value {
      guard let value else { throw ReplayPlanError(description: "'\(key)' is missing or wrong") }
      return value
    }
    func time(_ key: String) throws(ReplayPlanError) -> Int64? {
      guard let value = json[key] else { return nil }
      return try member(key, value.integerValue.flatMap { (0...Self.highest).contains($0) ? $0 : nil })
    }
    run = try member("run", json["run"]?.stringValue.flatMap { (1...64).contains($0.utf8.count) && $0.allSatisfy(\.isHexDigit) ? $0 : nil })
    (cluster, brokers) = (try member("cluster", json["cluster"]?.stringValue), try member("brokers", json["brokers"]?.stringValue))
    topic = try member("topic", json["topic"]?.stringValue)
    var selection = ReplaySelection()
    selection.filter = try member("filter", json["filter"].flatMap { ReplayFilter($0) })
    selection.isOfUnfinished = try member("onlyUnfinished", json["onlyUnfinished"]?.boolValue)
    selection.isNew = try member("asNew", json["asNew"]?.boolValue)
    selection.published = TimeRange(from: try time("from"), to: try time("to"))
    self.selection = selection
    let elements = try member("partitions", json["partitions"]?.elements.flatMap { $0.count <= 100_000 ? $0 : nil })
    partitions = elements.compactMap { ReplayedPartition($0) }
    guard Set(partitions.map(\.partition)).count == elements.count else {
      throw ReplayPlanError(description: "'partitions' has an invalid or a repeated one")
    }
  }
}

extension ReplayFilter {
  fileprivate var json: JSONValue {
    .object(Field.allCases.compactMap { field in self[field].map { .init(field.rawValue, $0) } }).appending([
      Self.values: JSONValue.object(values.map { .init($0.place.description, $0.value) })
    ])
  }

  private static let values = "where"

  fileprivate init?(_ json: JSONValue) {
    guard json.members != nil else { return nil }
    for field in Field.allCases {
      guard let value = json[field.rawValue] else { continue }
      guard let name = value.nameValue, field != .id || NotificationID(name.text) != nil else { return nil }
      self[field] = name
    }
    for member in json[Self.values]?.members ?? [] {
      guard let pointer = JSONPointer(member.key) else { return nil }
      values.append(PayloadValue(pointer, member.value))
    }
  }
}

extension ReplayedPartition {
  fileprivate var json: JSONValue {
    .object(present: [
      "partition": partition, "from": offsets.lowerBound, "to": offsets.upperBound, "done": done, "written": written,
      "counts": JSONValue.object(RunCount.allCases.map { .init($0.rawValue, counts[$0]) }), "lastTimestamp": lastTimestamp,
    ])
  }

  fileprivate init?(_ json: JSONValue) {
    func number(_ key: String, in range: ClosedRange<Int64>) -> Int64? {
      json[key]?.integerValue.flatMap { range.contains($0) ? $0 : nil }
    }
    guard let partition = number("partition", in: 0...Int64(Int32.max)), let to = number("to", in: 0...ReplayPlan.highest),
      let from = number("from", in: 0...to), let done = number("done", in: from...to),
      let written = number("written", in: 0...ReplayPlan.highest), let known = json["counts"]
    else { return nil }
    var counts = RunCounts()
    for kind in RunCount.allCases {
      guard let count = known[kind.rawValue]?.integerValue, (0...ReplayPlan.highest).contains(count) else { return nil }
      counts[kind] = Int(count)
    }
    self.init(Int32(partition), from..<to, end: written, position: done, counts)
    lastTimestamp = json["lastTimestamp"]?.integerValue
  }
}
