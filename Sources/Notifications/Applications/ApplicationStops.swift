internal import JSON

/// The stops of one application and what it was granted, as a record of `notifications.applications` has them: a value.
///
/// Each record has the grants, and all the stops that count, so that the newest of each application is enough (the topic is compacted). The time of the
/// newest change is that of the record itself, which the broker's clock gives like those of the requests; so the value has no time for it,
/// and the next record has it:
///
/// | state | the last of `stops` |
/// |---|---|
/// | `stopped` | without `to`; where it has no `from` it began with the record |
/// | `started` | where it has no `to` it ended with the record |
public struct ApplicationStops: Sendable, Equatable {
  /// Stops that a record has at most; of more the oldest are forgotten.
  public static var maximumStops: Int { 32 }
  /// The largest value that is read, in bytes.
  public static var valueBytes: Int { 64 << 10 }

  /// Oldest first; none begins before the end of the one before.
  public private(set) var stops: [ApplicationStop]
  /// The interruption levels that the application was granted.
  public private(set) var granted: GrantedLevels = []

  /// An application that was never stopped, and was granted nothing.
  public init() { stops = [] }

  /// Whether there is nothing to remember of the application.
  public var isEmpty: Bool { stops.isEmpty && granted.isEmpty }

  /// Whether an application may have this name: that of an `apns-topic`.
  public static func isApplication(_ name: UnsafeRawBufferPointer) -> Bool { ApplicationTopic.isValid(name) }

  /// What an application's name must be, as a sentence.
  public static var nameRule: String {
    "An application is a bundle id: 1 to \(RequestLimits.topicBytes) letters, digits, full stops, hyphens and underscores."
  }

  // MARK: What is asked

  /// The stop that goes on; nil where the application is not stopped.
  public var open: ApplicationStop? { stops.last.flatMap { $0.isOpen ? $0 : nil } }

  /// The stop during which a request was published: it is not shown.
  ///
  /// - Parameter time: milliseconds since 1970.
  public func during(_ time: Int64) -> ApplicationStop? {
    // Nearly always the last one, if any.
    stops.last { $0.from <= time }.flatMap { $0.contains(time) ? $0 : nil }
  }

  /// The stop that ends what was published at this time, and still waits for its device: the first one that ended, or will end, after that.
  public func ending(_ time: Int64) -> ApplicationStop? { stops.first { $0.isBeforeEnd(time) } }

  // MARK: Changes

  /// What is written to change it.
  public enum Change: Sendable, Equatable {
    /// The application is stopped.
    case stop(by: String, reason: String?)
    /// The application is started again.
    case start(by: String)
    /// The application is granted these levels, beside those that it has.
    case allow(GrantedLevels)
    /// These levels are taken from the application.
    case disallow(GrantedLevels)
  }

  /// The value of the record that makes a change.
  ///
  /// - Parameter oldest: stops that ended before this time are forgotten.
  /// - Returns: nil where it changes nothing.
  public func value(_ change: Change, forgettingBefore oldest: Int64) -> [UInt8]? {
    var kept = stops.filter { $0.to.map { $0 >= oldest } ?? true }
    var granted = granted
    var (isStopped, beginsStop) = (open != nil, false)
    switch change {
    case .stop(let by, let reason):
      guard open == nil else { return nil }
      kept.append(ApplicationStop(from: 0, by: by, reason: reason))
      (isStopped, beginsStop) = (true, true)
    case .start(let by):
      guard open != nil else { return nil }
      kept[kept.count - 1].endedBy = by
      isStopped = false
    case .allow(let levels): granted.formUnion(levels)
    case .disallow(let levels): granted.subtract(levels)
    }
    guard granted != self.granted || isStopped != (open != nil) else { return nil }
    kept = kept.suffix(Self.maximumStops)
    var json = JSONWriter(capacity: 512)
    json.openObject()
    json.member("state", word: isStopped ? "stopped" : "started")
    if !granted.isEmpty {
      json.key("allowed")
      json.openArray()
      for name in granted.names { json.string(name) }
      json.closeArray()
    }
    json.key("stops")
    json.openArray()
    for (index, stop) in kept.enumerated() {
      stop.write(withFrom: !(beginsStop && index == kept.count - 1), to: &json)
    }
    json.closeArray()
    json.closeObject()
    return json.withUnsafeBytes(Array.init)
  }

  // MARK: Reading

  /// Reads the value of a record.
  ///
  /// - Parameter timestamp: of the record: the time of the newest change.
  public init(_ value: UnsafeRawBufferPointer, timestamp: Int64) throws(FieldError) {
    guard value.count <= Self.valueBytes else { throw FieldError(field: "", rule: "A value takes at most \(Self.valueBytes) bytes.") }
    let object = try ObjectReader(parsing: value).object
    let isStopped: Bool
    switch object["state"]?.stringValue {
    case "stopped": isStopped = true
    case "started": isStopped = false
    default: throw FieldError(field: "state", rule: "The state is stopped or started.")
    }
    guard let elements = object["stops"]?.elements, elements.count <= Self.maximumStops else {
      throw FieldError(field: "stops", rule: "The stops are an array of at most \(Self.maximumStops).")
    }
    if let allowed = object["allowed"], allowed != .null {
      guard let names = allowed.elements?.map(\.stringValue), !names.contains(nil) else {
        throw FieldError(field: "allowed", rule: "What an application is granted is an array of words: critical, timeSensitive.")
      }
      granted = GrantedLevels(names: names.compactMap { $0 })
    }
    if isStopped, elements.isEmpty { throw FieldError(field: "stops", rule: "A stopped application has a stop.") }
    stops = []
    for (index, element) in elements.enumerated() {
      let previous = stops.last?.to ?? 0
      stops.append(
        try ApplicationStop(
          element, at: "stops[\(index)]", after: previous, isLast: index == elements.count - 1, isStopped: isStopped,
          recordedAt: Timestamp.bounded(timestamp)))
    }
  }
}

extension ApplicationStop {
  fileprivate func write(withFrom: Bool, to json: inout JSONWriter) {
    json.openObject()
    if withFrom { json.member("from", from) }
    if let to { json.member("to", to) }
    json.member("by", by)
    if let reason { json.member("reason", reason) }
    if let endedBy { json.member("endedBy", endedBy) }
    json.closeObject()
  }

  /// Reads one of a value's stops.
  ///
  /// - Parameters:
  ///   - previous: the end of the one before.
  ///   - timestamp: of the record. A broker's clock may have gone back: then the time is that before which it cannot be.
  fileprivate init(
    _ value: JSONValue, at path: String, after previous: Int64, isLast: Bool, isStopped: Bool, recordedAt timestamp: Int64
  ) throws(FieldError) {
    let reader = try ObjectReader(value, path: path)
    func time(_ name: String, atLeast least: Int64) throws(FieldError) -> Int64? {
      guard let member = reader[name] else { return nil }
      guard let given = member.integerValue, given >= least, given <= Timestamp.latest else {
        throw reader.error(name, "A time is in milliseconds since 1970, and not before the one that it follows.")
      }
      // Nothing began or ended later than the record that tells of it, by more than two brokers' clocks differ.
      return min(given, max(timestamp + Self.clockDifference, least))
    }
    func text(_ name: String) throws(FieldError) -> String? { try reader.text(name, longest: Self.textBytes) }
    let given = try time("from", atLeast: previous)
    guard let from = given ?? (isLast && isStopped ? max(timestamp, previous) : nil) else {
      throw reader.error("from", "Only a stop that began with the record has no beginning.")
    }
    var to = try time("to", atLeast: from)
    if isLast, isStopped {
      guard to == nil else { throw reader.error("to", "The last stop of a stopped application has no end.") }
    } else if isLast {
      to = to ?? max(timestamp, from)
    } else if to == nil {
      throw reader.error("to", "Only the last stop may have no end.")
    }
    guard let by = try text("by") else { throw reader.error("by", "A stop says who made it.") }
    self.init(from: from, to: to, by: by, reason: try text("reason"), endedBy: try text("endedBy"))
  }

  /// How much two brokers' clocks may differ, in milliseconds.
  private static var clockDifference: Int64 { 60_000 }
}
