internal import JSON

/// What a payload asks of the device, as one byte of stored records.
public struct PayloadFlags: OptionSet, Sendable, Hashable {
  /// The bits.
  public let rawValue: UInt8

  /// Creates flags from their bits.
  public init(rawValue: UInt8) { self.rawValue = rawValue }

  /// An alert with title, subtitle or body, which a service extension may change.
  public static let alert = PayloadFlags(rawValue: 1)
  /// `content-available`: wakes the application, even if nothing is shown.
  public static let contentAvailable = PayloadFlags(rawValue: 2)
  /// `mutable-content`.
  public static let mutableContent = PayloadFlags(rawValue: 4)
  /// The payload has a badge.
  public static let badge = PayloadFlags(rawValue: 8)
  /// The payload has a sound.
  public static let sound = PayloadFlags(rawValue: 16)

  /// Set by the cluster: the request was published again.
  ///
  /// Its time does not measure a latency.
  public static let isRedriven = PayloadFlags(rawValue: 128)

  /// How far the notification may interrupt: its `interruption-level`, or critical with a critical sound.
  public var level: InterruptionLevel {
    get { Self.levels[Int(rawValue >> 5 & 3)] }
    set { self = PayloadFlags(rawValue: rawValue & ~(3 << 5) | UInt8(Self.levels.firstIndex(of: newValue) ?? 0) << 5) }
  }

  /// The levels by their numbers, which take two bits.
  private static let levels: [InterruptionLevel] = [.active, .passive, .timeSensitive, .critical]

  /// Whether a service extension may change it: it asks for that and has text.
  public var isMutable: Bool { isSuperset(of: [.mutableContent, .alert]) }
}

/// The facts that the cluster needs of a payload. One pass checks the payload and finds them.
public struct PayloadFacts {
  /// What the payload asks of the device.
  public let flags: PayloadFlags
  /// `aps.category` as in the payload, with its quotes; empty if there is none.
  public let categorySource: UnsafeRawBufferPointer
  /// Whether it only wakes the application: `content-available` without an alert, a sound or a badge.
  public let isSilent: Bool
  /// The first unknown member of `aps`, its alert or its sound.
  public let unknown: UnknownField?

  /// Checks a payload: one JSON object with an `aps` object, whose known members are valid.
  ///
  /// Null members count as absent, because serializers write them. Unknown members stay, and the first of them is noted. A known member
  /// must not occur twice, since readers differ in which one counts.
  ///
  /// - Parameter type: the push type of the header. An `mdm` push needs no `aps` if it has a member `mdm`, and a push for PushKit never
  ///   needs one. In a Live Activity the alert's title and body may be objects, and the relevance score may be any number.
  public init(checking payload: UnsafeRawBufferPointer, of type: PushType? = nil) throws(Rejection) {
    var reader = PayloadReader(payload, type)
    do {
      try reader.read()
    } catch let rejection as Rejection {
      throw rejection.naming(reader.unknown)
    } catch {
      let rejection = Rejection(
        .badRequestPayload, field: "payload", error, rule: "The payload is one JSON object by RFC 8259, in UTF-8.",
        tooDeep: "In a payload at most 63 objects and arrays lie inside one another.")
      throw rejection.naming(reader.unknown)
    }
    (flags, isSilent, categorySource, unknown) = (reader.flags, reader.isSilent, reader.categorySource, reader.unknown)
  }

  /// Creates the facts of a payload that was checked before.
  public init(flags: PayloadFlags, categorySource: UnsafeRawBufferPointer) {
    self.flags = flags
    self.categorySource = categorySource
    isSilent = flags.contains(.contentAvailable) && flags.isDisjoint(with: [.alert, .sound, .badge])
    unknown = nil
  }
}

/// Reads a payload once.
private struct PayloadReader {
  private let type: PushType?
  private var scanner: JSONScanner
  private var seen: UInt32 = 0
  private var shows = false
  private var level = InterruptionLevel.active
  private var hasCriticalSound = false
  private(set) var flags: PayloadFlags = []
  private(set) var categorySource = UnsafeRawBufferPointer.empty
  private(set) var unknown: UnknownField?

  var isSilent: Bool { !shows && flags.contains(.contentAvailable) }

  init(_ payload: UnsafeRawBufferPointer, _ type: PushType?) {
    scanner = JSONScanner(payload, depthLimit: RequestLimits.payloadDepth)
    self.type = type
  }

  mutating func read() throws {
    guard scanner.peekKind() == .object else {
      let value = try scanner.skip()
      try scanner.finish()
      throw wrong("payload", "The payload is a JSON object.", value)
    }
    try scanner.openObject()
    var (aps, mdm) = (Presence.missing, Presence.missing)
    while let key = try scanner.nextKey() {
      if scanner.matches(key, "aps") {
        guard aps == .missing else { throw wrong("aps", "The member aps stands once.", key) }
        aps = scanner.peekKind() == .null ? .null : .present
        guard aps == .present else { continue }
        guard scanner.peekKind() == .object else { throw wrong("aps", "The member aps is an object.", try scanner.skip()) }
        try readAPS()
      } else if type == .mdm, scanner.matches(key, "mdm") {
        guard mdm == .missing else { throw wrong("mdm", "The member mdm stands once.", key) }
        mdm = scanner.peekKind() == .null ? .null : .present
        guard mdm == .present else { continue }
        let magic = try scanner.skip()
        guard magic.kind == .string else { throw wrong("mdm", "The member mdm is a string, the device's push magic.", magic) }
      }
    }
    try scanner.finish()
    guard aps == .present || mdm == .present || type?.needsNoAPS == true else {
      guard type != .mdm else {
        throw Rejection(.badRequestPayload, field: "mdm", rule: "The payload of an mdm push has a member mdm, a string.")
      }
      throw Rejection(.badRequestPayload, field: "aps", rule: "The payload has a member aps, an object.")
    }
    flags.level = hasCriticalSound ? .critical : level
  }

  private enum Presence {
    case missing, null, present
  }

  private mutating func note(_ key: JSONSpan, in place: UnknownField.Place) {
    if unknown == nil { unknown = UnknownField(member: key, of: place, scanner) }
  }

  private mutating func readAPS() throws {
    try scanner.openObject()
    while let key = try scanner.nextKey() {
      guard let known = APSKey.known(key, scanner) else {
        if !APSKey.hasNoRule(key, scanner) { note(key, in: .aps) }
        continue
      }
      guard seen & known.bit == 0 else { throw wrong(known.field, "A member of aps stands once.", key) }
      seen |= known.bit
      guard scanner.peekKind() != .null else { continue }
      switch known {
      case .alert:
        try readAlert()
        shows = true
      case .sound:
        try readSound()
        flags.insert(.sound)
        shows = true
      case .badge:
        let value = try scanner.skip()
        guard let badge = scanner.integer(value), (0...Int64(Int32.max)).contains(badge) else {
          throw wrong(known.field, "A badge is an integer from 0 to 2147483647; 0 clears it.", value)
        }
        flags.insert(.badge)
        shows = true
      case .category:
        categorySource = scanner.source(try take(known, .string, "A category is a string."))
      case .threadID, .targetContentID, .filterCriteria, .attributesType:
        try take(known, .string, "This member of aps is a string.")
      case .contentAvailable:
        if try takeFlag(known) { flags.insert(.contentAvailable) }
      case .mutableContent:
        if try takeFlag(known) { flags.insert(.mutableContent) }
      case .interruptionLevel:
        let value = try scanner.skip()
        guard let level = InterruptionLevel.allCases.first(where: { scanner.matches(value, $0.word) }) else {
          throw wrong(known.field, "An interruption level is passive, active, time-sensitive or critical.", value)
        }
        self.level = level
      case .relevanceScore where type == .liveactivity:
        try take(known, .number, "The relevance score of a Live Activity is a number.")
      case .relevanceScore:
        try takeShare(known.field, "A relevance score is a number from 0 to 1.")
      case .staleDate, .timestamp, .dismissalDate:
        try take(known, .number, "A date of aps is a number, in seconds since 1970.")
      case .event:
        let value = try scanner.skip()
        guard scanner.matches(value, "start") || scanner.matches(value, "update") || scanner.matches(value, "end") else {
          throw wrong(known.field, "An event is start, update or end.", value)
        }
      case .contentState, .attributes:
        try take(known, .object, "This member of aps is an object.")
      }
    }
  }

  private mutating func readAlert() throws {
    switch scanner.peekKind() {
    case .string:
      if try scanner.skip().count > 2 { flags.insert(.alert) }
    case .object:
      var seen: UInt32 = 0
      try scanner.openObject()
      while let key = try scanner.nextKey() {
        guard let index = AlertMember.all.firstIndex(where: { scanner.matches(key, $0.name) }) else {
          note(key, in: .alert)
          continue
        }
        let member = AlertMember.all[index]
        guard member.shape != .free else { continue }
        guard seen & (1 << index) == 0 else { throw wrong(member.field, "A member of alert stands once.", key) }
        seen |= 1 << index
        try readAlert(member)
      }
    default:
      throw wrong("aps.alert", "An alert is a string or an object.", try scanner.skip())
    }
  }

  private mutating func readAlert(_ member: AlertMember) throws {
    let kind = scanner.peekKind()
    guard kind != .null else { return }
    guard member.shape != .strings else { return try readStrings(member.field) }
    guard kind != .object || !member.mayBeLocalized || type != .liveactivity else { return try readLocalizedText(member.field) }
    let value = try scanner.skip()
    guard value.kind == .string else { throw wrong(member.field, "This member of alert is a string.", value) }
    if member.shape == .text, value.count > 2 { flags.insert(.alert) }
  }

  /// Reads a text of a Live Activity's alert: an object with a key and arguments.
  private mutating func readLocalizedText(_ field: StaticString) throws {
    let rule = "A text of a Live Activity's alert is a string, or an object with the string loc-key, and loc-args where it has arguments."
    var hasKey = false
    try scanner.openObject()
    while let key = try scanner.nextKey() {
      guard scanner.peekKind() != .null else { continue }
      if scanner.matches(key, "loc-key") {
        let value = try scanner.skip()
        guard value.kind == .string else { throw wrong(field, rule, value) }
        hasKey = true
        if value.count > 2 { flags.insert(.alert) }
      } else if scanner.matches(key, "loc-args") {
        try readStrings(field)
      }
    }
    guard hasKey else { throw Rejection(.badRequestPayload, field: field, rule: rule) }
  }

  private mutating func readStrings(_ field: StaticString) throws {
    guard scanner.peekKind() == .array else { throw wrong(field, "The arguments are an array of strings.", try scanner.skip()) }
    try scanner.openArray()
    while try scanner.nextElement() {
      let value = try scanner.skip()
      guard value.kind == .string else { throw wrong(field, "The arguments are an array of strings.", value) }
    }
  }

  private mutating func readSound() throws {
    switch scanner.peekKind() {
    case .string: try scanner.skip()
    case .object:
      var seen: UInt8 = 0
      try scanner.openObject()
      while let key = try scanner.nextKey() {
        guard let member = SoundMember.allCases.first(where: { scanner.matches(key, $0.word) }) else {
          note(key, in: .sound)
          continue
        }
        guard seen & 1 << member.rawValue == 0 else { throw wrong("aps.sound", "A member of sound stands once.", key) }
        seen |= 1 << member.rawValue
        guard scanner.peekKind() != .null else { continue }
        try readSound(member)
      }
    default:
      throw wrong("aps.sound", "A sound is a string or an object.", try scanner.skip())
    }
  }

  private mutating func readSound(_ member: SoundMember) throws {
    switch member {
    case .critical:
      let value = try scanner.skip()
      guard let number = scanner.integer(value), number == 0 || number == 1 else {
        throw wrong(member.field, "The flag critical is 0 or 1.", value)
      }
      if number == 1 { hasCriticalSound = true }
    case .name:
      let value = try scanner.skip()
      guard value.kind == .string else { throw wrong(member.field, "A sound's name is a string.", value) }
    case .volume: try takeShare(member.field, "A volume is a number from 0 to 1.")
    }
  }

  @discardableResult
  private mutating func take(_ key: APSKey, _ kind: JSONKind, _ rule: String) throws -> JSONSpan {
    let value = try scanner.skip()
    guard value.kind == kind else { throw wrong(key.field, rule, value) }
    return value
  }

  /// Reads a flag: 1 sets it, and 0 counts as absent.
  private mutating func takeFlag(_ key: APSKey) throws -> Bool {
    let value = try scanner.skip()
    switch scanner.integer(value) {
    case 1: return true
    case 0: return false
    default: throw wrong(key.field, "This member of aps is the number 1, or 0 as if it were absent.", value)
    }
  }

  private mutating func takeShare(_ field: StaticString, _ rule: String) throws {
    let value = try scanner.skip()
    guard let number = scanner.double(value), number >= 0, number <= 1 else { throw wrong(field, rule, value) }
  }

  private func wrong(_ field: StaticString, _ rule: String, _ value: JSONSpan) -> Rejection {
    Rejection(.badRequestPayload, field: field, rule: rule, offset: value.start)
  }
}
