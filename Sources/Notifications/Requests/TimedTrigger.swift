internal import JSON

/// A trigger that is due at a time, once or repeatedly.
///
///     {"type": "timeInterval", "timeInterval": 60, "repeats": true}
///     {"type": "calendar", "dateComponents": {"hour": 9, "minute": 0, "timeZone": "Europe/Rome"}, "repeats": true,
///       "notBefore": 1700000000, "late": 60}
///
/// An unknown member is rejected: ignoring it would make the notification due at another time than meant.
public struct TimedTrigger: Sendable, Hashable {
  /// How the due times are computed.
  public enum Rule: Sendable, Hashable {
    /// The milliseconds from the request to the first due time, and between due times.
    case interval(Int64)
    /// Each wall time with these units, in a zone; without one, in the device's zone.
    case calendar(CalendarUnits, zone: Name?)
  }

  /// The longest interval, in seconds: ten years.
  public static var maximumSeconds: Int64 { 3_652 * 86_400 }
  /// The shortest interval of a repeating trigger, in seconds.
  public static var minimumRepeatSeconds: Int64 { 60 }
  /// The smallest bound of lateness, in seconds: each firing is some milliseconds late.
  public static var minimumLateSeconds: Int64 { 1 }
  /// The largest bound of lateness, in seconds: the longest lifetime that a cluster can have.
  public static var maximumLateSeconds: Int64 { 30 * 86_400 }
  /// The longest name of a time zone, in bytes.
  public static var zoneBytes: Int { 64 }

  /// How the due times are computed.
  public let rule: Rule
  /// Whether the trigger repeats.
  public let repeats: Bool
  /// The first possible due time of a repeating trigger, in milliseconds since 1970.
  public let notBefore: Int64?
  /// How late an occurrence may fire, in milliseconds; nil for the cluster's setting.
  ///
  /// Only a repeating trigger has it.
  public let late: Int64?

  /// Returns how late an occurrence may fire, in milliseconds.
  ///
  /// - Parameter usual: the bound of a trigger that sets none, in milliseconds.
  public func lateness(usual: Int64) -> Int64 { max(late ?? usual, Self.minimumLateSeconds * 1000) }

  /// Creates a trigger from its parts, which the caller has checked.
  public init(_ rule: Rule, repeats: Bool = false, notBefore: Int64? = nil, late: Int64? = nil) {
    (self.rule, self.repeats, self.notBefore, self.late) = (rule, repeats, notBefore, late)
  }
}

// MARK: Reading

extension TimedTrigger {
  /// Reads a trigger of the type `timeInterval` from a JSON object.
  init(interval scanner: JSONScanner) throws {
    let members = try Members(scanner)
    try members.refuse(members.dateComponents, "trigger.dateComponents", "Only a calendar trigger has dateComponents.")
    let rule = "An interval is a number of seconds, more than 0 and at most \(Self.maximumSeconds)."
    guard let span = members.timeInterval, let seconds = scanner.double(span), seconds > 0, seconds <= Double(Self.maximumSeconds) else {
      throw Self.wrong("trigger.timeInterval", rule)
    }
    guard !members.isRepeating || seconds >= Double(Self.minimumRepeatSeconds) else {
      throw Self.wrong("trigger.timeInterval", "A trigger that repeats has an interval of at least \(Self.minimumRepeatSeconds) seconds.")
    }
    // Rounded up, so that the shortest interval is not 0.
    self.init(.interval(Int64((seconds * 1000).rounded(.up))), members)
  }

  /// Reads a trigger of the type `calendar` from a JSON object.
  init(calendar scanner: JSONScanner) throws {
    let members = try Members(scanner)
    try members.refuse(members.timeInterval, "trigger.timeInterval", "Only a time interval trigger has a timeInterval.")
    guard let span = members.dateComponents, span.kind == .object else {
      throw Self.wrong("trigger.dateComponents", "A calendar trigger has dateComponents, an object.")
    }
    let (units, zone) = try Self.components(scanner.scanner(of: span))
    self.init(.calendar(units, zone: zone), members)
  }

  private init(_ rule: Rule, _ members: Members) {
    self.init(rule, repeats: members.isRepeating, notBefore: members.notBefore, late: members.late)
  }

  private static func components(_ source: JSONScanner) throws -> (CalendarUnits, zone: Name?) {
    var scanner = source
    var units = CalendarUnits()
    var zone: Name?
    try scanner.openObject()
    while let (key, value) = try scanner.nextMember() {
      if scanner.matches(key, "timeZone") {
        guard zone == nil, let text = scanner.text(value), isZone(text) else {
          throw wrong("trigger.dateComponents.timeZone", "A time zone is a name of the IANA time zone database, and stands once.")
        }
        zone = Name(text)
        continue
      }
      guard let unit = CalendarUnits.Unit.allCases.first(where: { scanner.matches(key, $0.name) }) else {
        throw wrong("trigger.dateComponents", componentsRule)
      }
      guard units[unit] == nil, let number = scanner.integer(value), unit.range.contains(number) else {
        let range = unit.range
        throw wrong(unit.field, "A \(unit.name) is an integer from \(range.lowerBound) to \(range.upperBound), and stands once.")
      }
      units[unit] = Int(number)
    }
    guard !units.isEmpty else { throw wrong("trigger.dateComponents", componentsRule) }
    return (units, zone)
  }

  private static var componentsRule: String {
    let names = CalendarUnits.Unit.allCases.map(\.name.description).joined(separator: ", ")
    return "The dateComponents of a trigger are one or more of \(names), and a timeZone."
  }

  /// Whether a text has the form of a zone's name. Only a calendar knows whether the zone exists.
  static func isZone(_ text: String) -> Bool {
    (1...zoneBytes).contains(text.utf8.count)
      && text.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"): true
        case UInt8(ascii: "/"), UInt8(ascii: "_"), UInt8(ascii: "-"), UInt8(ascii: "+"): true
        default: false
        }
      }
  }

  fileprivate static func wrong(_ field: StaticString, _ rule: String) -> Rejection {
    Rejection(.badRequestParams, field: field, rule: rule)
  }

  /// The members of a timed trigger, each at most once.
  private struct Members {
    private(set) var timeInterval: JSONSpan?
    private(set) var dateComponents: JSONSpan?
    private(set) var isRepeating = false
    private(set) var notBefore: Int64?
    private(set) var late: Int64?

    init(_ source: JSONScanner) throws {
      var scanner = source
      var spans: (type: JSONSpan?, repeats: JSONSpan?, notBefore: JSONSpan?, late: JSONSpan?)
      func once(_ span: inout JSONSpan?, _ value: JSONSpan, _ field: StaticString) throws(Rejection) {
        guard span == nil else { throw TimedTrigger.wrong(field, "A member of a trigger stands once.") }
        span = value
      }
      try scanner.openObject()
      while let (key, value) = try scanner.nextMember() {
        if scanner.matches(key, "type") {
          try once(&spans.type, value, "trigger.type")
        } else if scanner.matches(key, "timeInterval") {
          try once(&timeInterval, value, "trigger.timeInterval")
        } else if scanner.matches(key, "dateComponents") {
          try once(&dateComponents, value, "trigger.dateComponents")
        } else if scanner.matches(key, "repeats") {
          try once(&spans.repeats, value, "trigger.repeats")
        } else if scanner.matches(key, "notBefore") {
          try once(&spans.notBefore, value, "trigger.notBefore")
        } else if scanner.matches(key, "late") {
          try once(&spans.late, value, "trigger.late")
        } else {
          throw TimedTrigger.wrong(
            "trigger", "The members of a trigger are type, timeInterval or dateComponents, repeats, notBefore and late.")
        }
      }
      if let span = spans.repeats {
        guard let flag = scanner.bool(span) else {
          throw TimedTrigger.wrong("trigger.repeats", "Whether a trigger repeats is true or false.")
        }
        isRepeating = flag
      }
      func seconds(_ span: JSONSpan?, upTo most: Int64, _ field: StaticString, _ rule: String) throws(Rejection) -> Int64? {
        guard let span else { return nil }
        guard isRepeating, let seconds = scanner.integer(span), (0...most).contains(seconds) else { throw TimedTrigger.wrong(field, rule) }
        return seconds * 1000
      }
      notBefore = try seconds(
        spans.notBefore, upTo: Timestamp.latest / 1000, "trigger.notBefore",
        "The time before which a repeating trigger is not due is in whole seconds since 1970; only a repeating one has it.")
      late = try seconds(
        spans.late, upTo: TimedTrigger.maximumLateSeconds, "trigger.late",
        "How late an occurrence may fire is in whole seconds, at most \(TimedTrigger.maximumLateSeconds); only a repeating trigger has it.")
    }

    /// Rejects a member of the other type.
    func refuse(_ span: JSONSpan?, _ field: StaticString, _ rule: String) throws(Rejection) {
      if span != nil { throw TimedTrigger.wrong(field, rule) }
    }
  }
}
