import JSON
import Notifications

/// The agreement of the processes of one run: what each must know before it begins.
public struct LoadAgreement: Sendable, Hashable {
  /// The number of processes.
  public let processes: Int
  /// How often each process shows that it is there, in milliseconds.
  let pulseMilliseconds: Int
  /// The pulses of another process without a word of this one, after which this one counts as silent.
  let pulseLimit: Int
  /// The load as a profile, which each process reads like a file.
  public let plan: String

  /// Makes it.
  ///
  /// - Parameter silenceMilliseconds: after how long a process counts as silent.
  public init(processes: Int, silenceMilliseconds: Int, plan: String) {
    let milliseconds = min(max(silenceMilliseconds / 10, 100), 2_000)
    self.init(processes: processes, pulseMilliseconds: milliseconds, pulseLimit: max(silenceMilliseconds / milliseconds, 2), plan: plan)
  }

  init(processes: Int, pulseMilliseconds: Int, pulseLimit: Int, plan: String) {
    (self.processes, self.plan) = (processes, plan)
    (self.pulseMilliseconds, self.pulseLimit) = (pulseMilliseconds, pulseLimit)
  }
}

/// A record of the topic `load`: what one process of a run tells the others.
///
/// The topic is compacted: of each key only the newest record is sure to be there. So each key has the number of the process that writes it.
struct LoadRecord: Sendable, Hashable {
  enum Content: Sendable, Hashable {
    /// The first process begins the run.
    case plan(LoadAgreement, by: Name)
    /// A process asks for a share.
    case join(by: Name)
    /// The devices of a process are connected, and it waits for the start.
    case ready
    /// A process has ended before its share was done.
    case left(reason: String)
    /// The first process takes back the share of a silent process before the start.
    case removed(process: UInt64)
    /// The first process says when the schedule begins, in milliseconds since 1970.
    case start(at: Int64)
    /// The first process ends all shares early.
    case stop
    /// A process is still there.
    case pulse
    case numbers(LoadNumbers, isFinal: Bool)
    case intervals(first: Int, [LoadMeasures.Interval])
    case violation(LoadFinding, number: Int)
    /// The first process has ended the run.
    case end(reason: String)
    /// `carillon load clean` has removed the run.
    case cleaned
    /// A plan of another version of the program.
    case foreignPlan(version: Int64)
  }

  /// The number that the first process has drawn for this run. Records of a former run of the same name have another one.
  var run: UInt64
  /// The number that the writing process has drawn.
  var process: UInt64
  var content: Content

  /// The version of the records.
  static let version: Int64 = 1
  /// The most bytes of a text that is shown.
  private static let maximumText = 300
  /// The bounds of what a plan may say, so that a process waits neither for ever nor not at all.
  private static let (pulses, pulseLimits) = (100...10_000, 2...100_000)

  // MARK: Writing

  /// The key, for the run with a name.
  func key(_ name: String) -> String {
    func own(_ kind: String) -> String { "\(name)/\(kind)/\(Self.hexadecimal(process))" }
    return switch content {
    case .plan, .cleaned, .foreignPlan: own("plan")
    case .join: own("join")
    case .ready: own("ready")
    case .left: own("left")
    case .removed(let process): "\(name)/removed/\(Self.hexadecimal(process))"
    case .start: own("start")
    case .stop: own("stop")
    case .pulse: own("pulse")
    case .numbers: own("numbers")
    case .intervals(let first, _): own("intervals") + "/\(first)"
    case .violation(_, let number): own("violation") + "/\(number)"
    case .end: own("end")
    }
  }

  /// The value; nil for a tombstone.
  var value: [UInt8]? {
    var members: [JSONValue.Member] = [
      .init(key: "version", value: .integer(Self.version)), .init(key: "run", value: .string(Self.hexadecimal(run))),
      .init(key: "process", value: .string(Self.hexadecimal(process))),
    ]
    func add(_ name: String, _ value: JSONValue) { members.append(.init(key: name, value: value)) }
    switch content {
    case .plan(let agreement, let name):
      add("name", .string(name.text))
      add("processes", .integer(Int64(agreement.processes)))
      add("pulseMs", .integer(Int64(agreement.pulseMilliseconds)))
      add("pulseLimit", .integer(Int64(agreement.pulseLimit)))
      add("plan", .string(agreement.plan))
    case .join(let name): add("name", .string(name.text))
    case .left(let reason), .end(let reason): add("reason", .string(reason))
    case .removed(let process): add("removed", .string(Self.hexadecimal(process)))
    case .start(let time): add("at", .integer(time))
    case .numbers(let numbers, let isFinal):
      members += numbers.members
      add("final", .bool(isFinal))
    case .intervals(let first, let intervals):
      add("first", .integer(Int64(first)))
      add("intervals", .array(intervals.map(\.json)))
    case .violation(let finding, let number):
      add("number", .integer(Int64(number)))
      add("violation", .string(finding.kind.rawValue))
      add("id", .string(finding.id.description))
      add("device", .string(finding.device.text))
      add("target", .string(finding.target.text))
      add("atMs", .integer(finding.atMilliseconds))
    case .ready, .stop, .pulse: break
    case .cleaned, .foreignPlan: return nil
    }
    return Array(JSONValue.object(members).text.utf8)
  }

  // MARK: Reading

  /// A record as the topic has it.
  enum Reading: Sendable, Hashable {
    /// It is of another run, or a tombstone that says nothing.
    case other
    /// It is of this run, and cannot be read.
    case unreadable
    case record(LoadRecord)
  }

  /// Reads a record of the run with a name.
  static func read(_ name: String, key: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer?) -> Reading {
    guard key.count > name.utf8.count, key.starts(with: name.utf8), key[name.utf8.count] == UInt8(ascii: "/") else { return .other }
    let words = key.dropFirst(name.utf8.count + 1).split(separator: UInt8(ascii: "/")).map { String(decoding: $0, as: UTF8.self) }
    guard let kind = words.first else { return .unreadable }
    func ofPlan(_ content: Content) -> Reading {
      guard kind == "plan" else { return value == nil ? .other : .unreadable }
      return words.dropFirst().first.flatMap(number).map { .record(LoadRecord(run: $0, process: $0, content: content)) } ?? .unreadable
    }
    guard let value else { return ofPlan(.cleaned) }
    guard let json = try? JSONValue(parsing: value), let version = json["version"]?.integerValue else { return .unreadable }
    guard version == Self.version else { return ofPlan(.foreignPlan(version: version)) }
    guard let run = number(json["run"]), let process = number(json["process"]), let content = Content(kind, json) else {
      return .unreadable
    }
    return .record(LoadRecord(run: run, process: process, content: content))
  }

  fileprivate static func number(_ json: JSONValue?) -> UInt64? { json?.stringValue.flatMap(number) }

  private static func number(_ text: String) -> UInt64? { text.utf8.count == 16 ? UInt64(text, radix: 16) : nil }

  fileprivate static func text(_ json: JSONValue?) -> String? {
    json?.stringValue.map { String(decoding: $0.utf8.prefix(maximumText), as: UTF8.self) }
  }

  fileprivate static func agreement(_ json: JSONValue) -> LoadAgreement? {
    guard let processes = LoadNumbers.count(json["processes"]), (2...LoadPlan.maximumProcesses).contains(processes),
      let milliseconds = LoadNumbers.count(json["pulseMs"]), pulses.contains(milliseconds),
      let limit = LoadNumbers.count(json["pulseLimit"]), pulseLimits.contains(limit), let plan = json["plan"]?.stringValue
    else { return nil }
    return LoadAgreement(processes: processes, pulseMilliseconds: milliseconds, pulseLimit: limit, plan: plan)
  }

  private static func hexadecimal(_ number: UInt64) -> String {
    let text = String(number, radix: 16)
    return String(repeating: "0", count: 16 - text.utf8.count) + text
  }
}

extension LoadRecord.Content {
  fileprivate init?(_ kind: String, _ json: JSONValue) {
    let content: Self? =
      switch kind {
      case "plan": LoadRecord.agreement(json).flatMap { agreement in LoadRecord.text(json["name"]).map { .plan(agreement, by: Name($0)) } }
      case "join": LoadRecord.text(json["name"]).map { .join(by: Name($0)) }
      case "ready": .ready
      case "left": LoadRecord.text(json["reason"]).map { .left(reason: $0) }
      case "removed": LoadRecord.number(json["removed"]).map { .removed(process: $0) }
      case "start": LoadNumbers.count(json["at"]).map { .start(at: Int64($0)) }
      case "stop": .stop
      case "pulse": .pulse
      case "numbers": LoadNumbers(json).flatMap { numbers in json["final"]?.boolValue.map { .numbers(numbers, isFinal: $0) } }
      case "intervals": Self.intervals(json)
      case "violation": Self.violation(json)
      case "end": LoadRecord.text(json["reason"]).map { .end(reason: $0) }
      default: nil
      }
    guard let content else { return nil }
    self = content
  }

  private static func intervals(_ json: JSONValue) -> Self? {
    guard let first = LoadNumbers.count(json["first"]), let elements = json["intervals"]?.elements else { return nil }
    let intervals = elements.compactMap { LoadMeasures.Interval($0) }
    guard intervals.count == elements.count, first + intervals.count <= LoadNumbers.maximumIntervals else { return nil }
    return .intervals(first: first, intervals)
  }

  private static func violation(_ json: JSONValue) -> Self? {
    guard let number = LoadNumbers.count(json["number"]), let kind = json["violation"]?.stringValue.flatMap(LoadViolation.Kind.init),
      let id = json["id"]?.stringValue.flatMap({ NotificationID($0) }),
      let device = json["device"]?.stringValue.flatMap({ DeviceToken($0) }),
      let target = LoadRecord.text(json["target"]), let time = LoadNumbers.count(json["atMs"])
    else { return nil }
    return .violation(LoadFinding(kind, id, device, Name(target), atMilliseconds: Int64(time)), number: number)
  }
}
