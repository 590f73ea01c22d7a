package import JSON
import Notifications

/// The selection and the progress of a replay, which a file keeps for its continuation. A value.
@dynamicMemberLookup
package struct ReplayPlan: Sendable {
  /// The replay's name: hexadecimal digits, different for each replay.
  package let run: String
  /// The cluster's name for origins.
  package let cluster: String
  /// The brokers' id of the cluster; empty if they have none.
  package let brokers: String
  /// The wanted records. ``partitions`` have its places.
  package let selection: ReplaySelection
  /// The progress of each partition.
  package var partitions: [ReplayedPartition]

  /// A part of the selection.
  package subscript<Value>(dynamicMember path: KeyPath<ReplaySelection, Value>) -> Value { selection[keyPath: path] }

  /// Whether it is complete.
  package var isComplete: Bool { partitions.allSatisfy(\.isComplete) }

  /// The counts of finished records.
  package var counts: ReplayCounts { partitions.reduce(ReplayCounts()) { $0 + $1.counts } }

  /// The offsets to read, and how many are done.
  package var progress: (done: Int64, total: Int64) {
    partitions.reduce((0, 0)) { sum, partition in
      (sum.0 + max(0, partition.done - partition.offsets.lowerBound), sum.1 + Int64(partition.offsets.count))
    }
  }
}

/// Why a replay cannot continue from a file.
package struct ReplayPlanError: Error, CustomStringConvertible, Sendable, Equatable {
  /// The reason, as the end of a sentence: "it has no …".
  package let description: String
}

extension ReplayPlan {
  /// The second layout has requests that become new ones. A program that knows only the first must not continue these as a replay.
  private static let (layout, layoutOfNew): (Int64, Int64) = (1, 2)
  /// No offset, number or time is greater, so sums do not overflow.
  static let highest: Int64 = 1 << 48

  /// The text of the file.
  package var json: JSONValue {
    JSONValue.object(present: [
      "carillonReplay": self.isNew ? Self.layoutOfNew : Self.layout, "run": run, "cluster": cluster, "brokers": brokers,
      "topic": self.topic, "destination": self.destination, "filter": self.filter.json, "onlyUnfinished": self.isOfUnfinished,
      "from": self.published.from, "to": self.published.to, "partitions": partitions.map(\.json),
    ])
  }

  /// Reads the text of a file.
  package init(_ bytes: [UInt8]) throws(ReplayPlanError) {
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
    var selection = ReplaySelection(topic: try text("topic"), destination: try text("destination"))
    guard let filter = json["filter"].flatMap({ ReplayFilter($0) }) else {
      throw ReplayPlanError(description: "'filter' is missing or wrong")
    }
    guard let isOfUnfinished = json["onlyUnfinished"]?.boolValue else {
      throw ReplayPlanError(description: "'onlyUnfinished' is missing, or neither true nor false")
    }
    (selection.filter, selection.isOfUnfinished) = (filter, isOfUnfinished)
    selection.isNew = layout.integerValue == Self.layoutOfNew
    selection.published = TimeRange(from: try time("from"), to: try time("to"))
    self.selection = selection
    guard let elements = json["partitions"]?.elements, elements.count <= 100_000 else {
      throw ReplayPlanError(description: "'partitions' is missing, is not a list or has more than 100,000")
    }
    partitions = elements.compactMap { ReplayedPartition($0) }
    guard Set(partitions.map(\.partition)).count == elements.count else {
      throw ReplayPlanError(description: "'partitions' has an invalid or a repeated one")
    }
  }
}

extension ReplayFilter {
  fileprivate var json: JSONValue {
    let values = values.map { JSONValue.object(["pointer": $0.pointer.description, "value": $0.value]) }
    return JSONValue.object(wanted.map { .init($0.rawValue, $1) })
      .appending(contentsOf: .object(present: ["values": values.isEmpty ? .none : Optional(values)]))
  }

  fileprivate init?(_ json: JSONValue) {
    guard json.members != nil else { return nil }
    for field in Field.allCases {
      guard let value = json[field.rawValue] else { continue }
      guard let name = value.nameValue, field != .id || NotificationID(name.text) != nil else { return nil }
      fields[field] = name
    }
    for element in json["values"]?.elements ?? [] {
      guard let pointer = element["pointer"]?.stringValue.flatMap({ JSONPointer($0) }), let value = element["value"] else { return nil }
      values.append(PayloadValue(pointer, value))
    }
  }
}

extension ReplayedPartition {
  fileprivate var json: JSONValue {
    .object(present: [
      "partition": partition, "from": offsets.lowerBound, "to": offsets.upperBound, "done": done, "written": written,
      "counts": JSONValue.object(["read": counts.read]).appending(contentsOf: counts.json()), "lastTimestamp": lastTimestamp,
    ])
  }

  fileprivate init?(_ json: JSONValue) {
    guard let number = json["partition"]?.integerValue.flatMap({ Int32(exactly: $0) }), number >= 0,
      let from = json["from"]?.integerValue, let to = json["to"]?.integerValue, from >= 0, from <= to, to <= ReplayPlan.highest,
      let done = json["done"]?.integerValue, (from...to).contains(done), let written = json["written"]?.integerValue,
      (0...ReplayPlan.highest).contains(written),
      let counts = json["counts"].flatMap({ ReplayCounts($0, upTo: ReplayPlan.highest) })
    else { return nil }
    self.init(number, from..<to, end: written, position: done, counts)
    lastTimestamp = json["lastTimestamp"]?.integerValue
  }
}
