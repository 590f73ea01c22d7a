internal import JSON

/// A value: the stops, grants and rate limits of an application, as in `notifications.applications`.
///
/// Each record has all grants, and all stops and limits that count, so the newest one of an application is enough: the topic is compacted.
/// The time of the newest change is the record's own timestamp. The broker's clock sets it, as for the requests. So the value lacks this
/// time, and the next record has it:
///
/// | state | the last of `stops` |
/// |---|---|
/// | `stopped` | without `to`; without `from` it began with the record |
/// | `started` | without `to` it ended with the record |
///
/// The last of `limits` without `from` begins ``LimitPeriod/delayMilliseconds`` after the record.
public struct ApplicationStops: Sendable, Equatable {
  /// The maximum number of stops in a record. The oldest ones are dropped.
  public static var maximumStops: Int { 32 }
  /// The largest value that is read, in bytes.
  public static var valueBytes: Int { 64 << 10 }

  /// The stops, oldest first. None begins before the previous one's end.
  public private(set) var stops: [ApplicationStop]
  /// The interruption levels that the application was granted.
  public private(set) var granted: GrantedLevels = []
  /// The rate limits, present and past.
  public private(set) var limits = LimitHistory()

  /// Creates the state of an application that was never stopped or limited, and has no grants.
  public init() { stops = [] }

  /// Whether the application has neither stops nor grants nor limits.
  public var isEmpty: Bool { stops.isEmpty && granted.isEmpty && limits.isEmpty }

  /// Whether an application may have this name: that of an `apns-topic`.
  public static func isApplication(_ name: UnsafeRawBufferPointer) -> Bool { ApplicationTopic.isValid(name) }

  /// The rule for an application's name, as a sentence.
  public static var nameRule: String {
    "An application is a bundle id: 1 to \(RequestLimits.topicBytes) letters, digits, full stops, hyphens and underscores."
  }

  // MARK: Questions

  /// The present stop; nil if the application is not stopped.
  public var open: ApplicationStop? { stops.last.flatMap { $0.isOpen ? $0 : nil } }

  /// Returns the stop during which a request was published. The request is not shown.
  ///
  /// - Parameter time: milliseconds since 1970.
  public func during(_ time: Int64) -> ApplicationStop? {
    // Nearly always this is the last stop, if there is any.
    stops.last { $0.from <= time }.flatMap { $0.contains(time) ? $0 : nil }
  }

  /// Returns the stop that ends a request of this time which waits for its device.
  ///
  /// It is the first stop that ended later, or has not ended.
  public func ending(_ time: Int64) -> ApplicationStop? { stops.first { $0.isBeforeEnd(time) } }

  // MARK: Changes

  /// A change of an application's state.
  public enum Change: Sendable, Equatable {
    /// The application is stopped.
    case stop(by: String, reason: String?)
    /// The application is started again.
    case start(by: String)
    /// The application gets these levels in addition.
    case allow(GrantedLevels)
    /// The application loses these levels.
    case disallow(GrantedLevels)
    /// The application gets this limit in place of the present one; nil for none.
    case limit(RateLimit?, by: String)
  }

  /// Returns the value of the record that makes a change.
  ///
  /// - Parameter oldest: drops the stops that ended before this time.
  /// - Returns: nil if the change has no effect.
  public func value(_ change: Change, forgettingBefore oldest: Int64) -> [UInt8]? {
    var kept = stops.filter { $0.to.map { $0 >= oldest } ?? true }
    var granted = granted
    var (limits, beginsPeriod) = (limits.forgetting(before: oldest), false)
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
    case .limit(let limit, let by):
      guard let changed = self.limits.changed(to: limit, by: by, forgettingBefore: oldest) else { return nil }
      (limits, beginsPeriod) = (changed, true)
    }
    guard granted != self.granted || isStopped != (open != nil) || beginsPeriod else { return nil }
    kept = kept.suffix(Self.maximumStops)
    var json = JSONWriter(capacity: 512)
    json.openObject()
    json.member("state", word: isStopped ? "stopped" : "started")
    json.member("allowed", granted.isEmpty ? nil : granted.names)
    if !limits.isEmpty {
      json.key("limits")
      limits.write(beginsPeriod: beginsPeriod, to: &json)
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
  /// - Parameter timestamp: the record's timestamp, which is the time of the newest change.
  public init(_ value: UnsafeRawBufferPointer, timestamp: Int64) throws(FieldError) {
    let reader = try ObjectReader(parsing: value, atMost: Self.valueBytes)
    let object = reader.object
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
    limits = try LimitHistory(reader, recordedAt: Timestamp.bounded(timestamp))
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
  ///   - previous: the end of the previous stop.
  ///   - timestamp: the record's timestamp. If a broker's clock went back, the previous end counts instead.
  fileprivate init(
    _ value: JSONValue, at path: String, after previous: Int64, isLast: Bool, isStopped: Bool, recordedAt timestamp: Int64
  ) throws(FieldError) {
    let reader = try ObjectReader(value, path: path)
    func time(_ name: String, atLeast least: Int64) throws(FieldError) -> Int64? {
      guard let member = reader[name] else { return nil }
      guard let given = member.integerValue, given >= least, given <= Timestamp.latest else {
        throw reader.error(name, "A time is in milliseconds since 1970, and not before the one that it follows.")
      }
      // No stop begins or ends later than its record, except by the difference of two brokers' clocks.
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

  /// The maximum difference of two brokers' clocks, in milliseconds.
  static var clockDifference: Int64 { 60_000 }
}
