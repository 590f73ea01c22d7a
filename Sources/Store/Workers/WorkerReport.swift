import JSON
public import Notifications

/// A worker process' report of itself, which Redis keeps as JSON. A value.
///
/// A reader skips members that it does not know, since later versions may add some. It trusts nothing else either: texts, lists and the
/// whole report have limits at write and at read.
public struct WorkerReport: Sendable, Hashable {
  /// A reason why the process is not ready.
  public struct Condition: Sendable, Hashable {
    /// The condition's name: `redis`, `brokers`, `draining`.
    public var name: String
    /// Its lane; nil for the whole process.
    public var lane: String?
    /// Why it is not ready.
    public var reason: String
    /// The time since when it holds, in milliseconds since 1970 by the worker's clock.
    public var since: Int64

    /// A condition of its parts.
    public init(name: String, lane: String? = nil, reason: String, since: Int64) {
      (self.name, self.lane, self.reason, self.since) = (name, lane, reason, since)
    }
  }

  /// How far a fan-out lane is behind in its partition of `deliveries`.
  public struct Lag: Sendable, Hashable {
    /// The lane's name in the worker: `fan-out-0`.
    public var lane: String
    /// The partition.
    public var partition: Int32
    /// Records that the lane has not processed yet.
    public var records: Int64
    /// The age of the oldest of them in milliseconds; 0 if there is none, nil if unknown.
    public var milliseconds: Int64?

    /// A lag of its parts.
    public init(lane: String, partition: Int32, records: Int64, milliseconds: Int64?) {
      (self.lane, self.partition, self.records, self.milliseconds) = (lane, partition, records, milliseconds)
    }
  }

  /// The worker's name in events and logs, without a lane's number; unique in the cluster.
  public var name: Name
  /// The stages that it runs: `transform`, `fan-out`.
  public var roles: [String]
  /// The version of the program.
  public var version: String
  /// When the process began, in milliseconds since 1970 by its own clock.
  public var started: Int64
  /// When it wrote this, by the same clock.
  public var written: Int64
  /// The root of its admin server, as a URL.
  public var admin: String?
  /// Where devices connect, as URLs.
  public var devices: [String] = []
  /// The number of its lanes.
  public var lanes = 0
  /// The number of conditions that are not ready. The report lists only the first ones.
  public var unreadyCount = 0
  /// The conditions that are not ready.
  public var unready: [Condition] = []
  /// Connections of devices; nil if it takes none.
  public var connections: Int?
  /// Partitions that it owns in the consumer group; nil if it is not in the group.
  public var partitions: Int?
  /// How far its lanes are behind in `deliveries`. If there are many, the report lists those furthest behind.
  public var laneLags: [Lag] = []
  /// How far its machine's clock is ahead of that of Redis, in milliseconds; nil before the first comparison.
  public var clockAhead: Int64?
  /// The settings that all workers share: key to value in words.
  public var settings: [String: String] = [:]

  /// A report of a process that has just started.
  public init(name: Name, roles: [String], version: String, started: Int64, written: Int64) {
    (self.name, self.roles, self.version) = (name, roles, version)
    (self.started, self.written) = (started, written)
  }

  /// Whether it is ready for work.
  public var isReady: Bool { unreadyCount == 0 }
  /// Whether it is draining before its end.
  public var isDraining: Bool { unready.contains { $0.name == "draining" } }
}

// MARK: - The form that Redis keeps

extension WorkerReport {
  /// The most bytes of a report.
  static let maximumByteCount = 24_576
  /// The most conditions, addresses, lanes and settings of a report.
  static let (maximumConditions, maximumAddresses, maximumLanes, maximumSettings) = (8, 4, 32, 24)
  /// The most bytes of a short and of a long text in JSON. The sum of all texts stays below `maximumByteCount`.
  static let (shortText, longText) = (128, 240)

  /// The bytes that Redis keeps: JSON on one line.
  var bytes: [UInt8] {
    func short(_ text: String) -> String { Self.cut(text, Self.shortText) }
    func long(_ text: String) -> String { Self.cut(text, Self.longText) }
    let lags = laneLags.prefix(Self.maximumLanes).map { lag in
      JSONValue.object(present: [
        "lane": short(lag.lane), "partition": lag.partition, "records": lag.records, "ms": lag.milliseconds,
      ])
    }
    let settings = settings.sorted { $0.key < $1.key }.prefix(Self.maximumSettings).map { JSONValue.Member(short($0.key), short($0.value)) }
    let conditions = unready.prefix(Self.maximumConditions).map { condition in
      JSONValue.object(present: [
        "name": short(condition.name), "lane": condition.lane.map(short), "reason": long(condition.reason), "since": condition.since,
      ])
    }
    let json = JSONValue.object(present: [
      "worker": long(name.text), "roles": roles.prefix(Self.maximumAddresses).map(short), "version": short(version), "started": started,
      "written": written, "admin": admin.map(long), "devices": devices.prefix(Self.maximumAddresses).map(long), "lanes": lanes,
      "connections": connections, "partitions": partitions, "clockAheadMs": clockAhead, "lags": lags.isEmpty ? nil : lags,
      "settings": settings.isEmpty ? nil : JSONValue.object(settings), "unready": unreadyCount, "conditions": conditions,
    ])
    var writer = JSONWriter()
    json.write(to: &writer)
    return Array(writer.text.utf8)
  }

  /// Reads the bytes that Redis keeps; nil for anything else.
  init?(_ bytes: [UInt8]) {
    guard bytes.count <= Self.maximumByteCount, let json = try? bytes.withUnsafeBytes({ try JSONValue(parsing: $0) }),
      let name = Self.text(json["worker"], Self.longText), !name.isEmpty, let roles = json["roles"]?.elements,
      let version = Self.text(json["version"], Self.shortText), let started = Self.time(json["started"]),
      let written = Self.time(json["written"])
    else { return nil }
    self.init(
      name: Name(name), roles: roles.prefix(Self.maximumAddresses).compactMap { Self.text($0, Self.shortText) }, version: version,
      started: started, written: written)
    admin = Self.text(json["admin"], Self.longText)
    devices = (json["devices"]?.elements ?? []).prefix(Self.maximumAddresses).compactMap { Self.text($0, Self.longText) }
    lanes = Self.count(json["lanes"]) ?? 0
    connections = Self.count(json["connections"])
    partitions = Self.count(json["partitions"])
    clockAhead = json["clockAheadMs"]?.integerValue.map { min(max($0, -Timestamp.latest), Timestamp.latest) }
    laneLags = (json["lags"]?.elements ?? []).prefix(Self.maximumLanes).compactMap { Lag($0) }
    for member in (json["settings"]?.members ?? []).prefix(Self.maximumSettings) {
      if let value = Self.text(member.value, Self.shortText) { settings[Self.cut(member.key, Self.shortText)] = value }
    }
    unready = (json["conditions"]?.elements ?? []).prefix(Self.maximumConditions).compactMap { Condition($0) }
    unreadyCount = max(Self.count(json["unready"]) ?? 0, unready.count)
  }

  fileprivate static func text(_ value: JSONValue?, _ maximum: Int) -> String? { value?.stringValue.map { cut($0, maximum) } }

  fileprivate static func time(_ value: JSONValue?) -> Int64? { value?.integerValue.map { Timestamp.bounded($0) } }

  fileprivate static func count(_ value: JSONValue?) -> Int? { value?.integerValue.map { Int(min(max(0, $0), Int64(Int32.max))) } }

  /// Cuts a text to this many bytes in JSON, where one character may take six.
  static func cut(_ text: String, _ maximum: Int) -> String {
    var room = maximum
    var end = text.unicodeScalars.startIndex
    for scalar in text.unicodeScalars {
      room -= scalar.value < 0x20 || scalar == "\"" || scalar == "\\" || scalar.value == 0x7F ? 6 : UTF8.width(scalar)
      if room < 0 { return String(text.unicodeScalars[..<end]) }
      end = text.unicodeScalars.index(after: end)
    }
    return text
  }
}

extension WorkerReport.Lag {
  fileprivate init?(_ json: JSONValue) {
    guard let lane = WorkerReport.text(json["lane"], WorkerReport.shortText), let partition = WorkerReport.count(json["partition"]),
      let records = json["records"]?.integerValue
    else { return nil }
    self.init(
      lane: lane, partition: Int32(partition), records: min(max(0, records), Self.maximumRecords),
      milliseconds: WorkerReport.time(json["ms"]).map { max(0, $0) })
  }

  /// No partition has more. A sum over all lanes stays within 64 bits.
  private static let maximumRecords: Int64 = 1 << 50
}

extension WorkerReport.Condition {
  fileprivate init?(_ json: JSONValue) {
    guard let name = WorkerReport.text(json["name"], WorkerReport.shortText),
      let reason = WorkerReport.text(json["reason"], WorkerReport.longText), let since = WorkerReport.time(json["since"])
    else { return nil }
    self.init(name: name, lane: WorkerReport.text(json["lane"], WorkerReport.shortText), reason: reason, since: since)
  }
}
