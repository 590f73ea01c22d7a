internal import JSON

/// What a payload asks of the device, in one byte of stored records.
public struct PayloadFlags: OptionSet, Sendable, Hashable {
  /// The bits.
  public let rawValue: UInt8

  /// Flags of these bits.
  public init(rawValue: UInt8) { self.rawValue = rawValue }

  /// There is an alert with a title, a subtitle or a body, so that a service extension may work on it.
  public static let alert = PayloadFlags(rawValue: 1)
  /// `content-available` alone: nothing is shown.
  public static let silent = PayloadFlags(rawValue: 2)
  /// `mutable-content`.
  public static let mutableContent = PayloadFlags(rawValue: 4)
  /// There is a badge.
  public static let badge = PayloadFlags(rawValue: 8)
  /// There is a sound.
  public static let sound = PayloadFlags(rawValue: 16)

  /// Nothing of the payload's: the request comes again, so that its time does not say how long it takes.
  public static let comesAgain = PayloadFlags(rawValue: 128)

  /// Whether a service extension may change the notification: it asks for that, and has a text.
  public var isMutable: Bool { isSuperset(of: [.mutableContent, .alert]) }
}

/// What the cluster needs to know of a payload, found in the one pass that checks it.
public struct PayloadFacts {
  /// What it asks for.
  public let flags: PayloadFlags
  /// `aps.category` as it stands in the payload, quotes included; none when there is none.
  public let categorySource: UnsafeRawBufferPointer

  /// Checks a payload: one JSON object with an `aps` object, whose known members have the types and ranges of the rule book.
  ///
  /// Unknown members are kept and not looked at. A known member must not stand twice, since readers differ in which one counts.
  public init(checking payload: UnsafeRawBufferPointer) throws(Rejection) {
    var reader = PayloadReader(payload)
    do {
      try reader.read()
    } catch let rejection as Rejection {
      throw rejection
    } catch {
      throw Rejection(
        .badRequestPayload, field: "payload", error, rule: "The payload is one JSON object by RFC 8259, in UTF-8.",
        tooDeep: "In a payload at most 63 objects and arrays lie inside one another.")
    }
    (flags, categorySource) = (reader.flags, reader.categorySource)
  }

  /// What was found in a payload that was checked before.
  public init(flags: PayloadFlags, categorySource: UnsafeRawBufferPointer) {
    self.flags = flags
    self.categorySource = categorySource
  }
}

/// Walks a payload once.
private struct PayloadReader {
  private var scanner: JSONScanner
  private var seen: UInt32 = 0
  private(set) var flags: PayloadFlags = []
  private(set) var categorySource = UnsafeRawBufferPointer.none

  init(_ payload: UnsafeRawBufferPointer) { scanner = JSONScanner(payload, depthLimit: RequestLimits.payloadDepth) }

  mutating func read() throws {
    guard scanner.peekKind() == .object else {
      let value = try scanner.skip()
      try scanner.finish()
      throw wrong("payload", "The payload is a JSON object.", value)
    }
    try scanner.openObject()
    var hasAPS = false
    while let key = try scanner.nextKey() {
      guard scanner.matches(key, "aps") else { continue }
      guard !hasAPS else { throw wrong("aps", "The member aps stands once.", key) }
      guard scanner.peekKind() == .object else { throw wrong("aps", "The member aps is an object.", try scanner.skip()) }
      hasAPS = true
      try readAPS()
    }
    try scanner.finish()
    guard hasAPS else { throw Rejection(.badRequestPayload, field: "aps", rule: "The payload has a member aps, an object.") }
    let shows = seen & (APSKey.alert.bit | APSKey.badge.bit | APSKey.sound.bit) != 0
    if seen & APSKey.contentAvailable.bit != 0, !shows { flags.insert(.silent) }
  }

  private mutating func readAPS() throws {
    try scanner.openObject()
    while let key = try scanner.nextKey() {
      guard let known = APSKey.known(key, scanner) else { continue }
      guard seen & known.bit == 0 else { throw wrong(known.field, "A member of aps stands once.", key) }
      seen |= known.bit
      switch known {
      case .alert: try readAlert()
      case .sound:
        try readSound()
        flags.insert(.sound)
      case .badge:
        let value = try scanner.skip()
        guard let badge = scanner.integer(value), (0...Int64(Int32.max)).contains(badge) else {
          throw wrong(known.field, "A badge is an integer from 0 to 2147483647; 0 clears it.", value)
        }
        flags.insert(.badge)
      case .category:
        categorySource = scanner.source(try take(known, .string, "A category is a string."))
      case .threadID, .targetContentID, .filterCriteria, .attributesType:
        try take(known, .string, "This member of aps is a string.")
      case .contentAvailable:
        try takeOne(known)
      case .mutableContent:
        try takeOne(known)
        flags.insert(.mutableContent)
      case .interruptionLevel:
        let value = try scanner.skip()
        guard
          scanner.matches(value, "active") || scanner.matches(value, "passive") || scanner.matches(value, "time-sensitive")
            || scanner.matches(value, "critical")
        else { throw wrong(known.field, "An interruption level is passive, active, time-sensitive or critical.", value) }
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
        guard let index = AlertMember.all.firstIndex(where: { scanner.matches(key, $0.name) }) else { continue }
        let member = AlertMember.all[index]
        guard seen & (1 << index) == 0 else { throw wrong(member.field, "A member of alert stands once.", key) }
        seen |= 1 << index
        guard !member.isArray else {
          try readStrings(member.field)
          continue
        }
        let value = try scanner.skip()
        guard value.kind == .string else { throw wrong(member.field, "This member of alert is a string.", value) }
        if member.isText, value.count > 2 { flags.insert(.alert) }
      }
    default:
      throw wrong("aps.alert", "An alert is a string or an object.", try scanner.skip())
    }
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
      try scanner.openObject()
      while let key = try scanner.nextKey() {
        if scanner.matches(key, "critical") {
          let value = try scanner.skip()
          guard let number = scanner.integer(value), number == 0 || number == 1 else {
            throw wrong("aps.sound.critical", "The flag critical is 0 or 1.", value)
          }
        } else if scanner.matches(key, "name") {
          let value = try scanner.skip()
          guard value.kind == .string else { throw wrong("aps.sound.name", "A sound's name is a string.", value) }
        } else if scanner.matches(key, "volume") {
          try takeShare("aps.sound.volume", "A volume is a number from 0 to 1.")
        }
      }
    default:
      throw wrong("aps.sound", "A sound is a string or an object.", try scanner.skip())
    }
  }

  @discardableResult
  private mutating func take(_ key: APSKey, _ kind: JSONKind, _ rule: String) throws -> JSONSpan {
    let value = try scanner.skip()
    guard value.kind == kind else { throw wrong(key.field, rule, value) }
    return value
  }

  private mutating func takeOne(_ key: APSKey) throws {
    let value = try scanner.skip()
    guard scanner.integer(value) == 1 else { throw wrong(key.field, "This member of aps is the number 1, or absent.", value) }
  }

  private mutating func takeShare(_ field: StaticString, _ rule: String) throws {
    let value = try scanner.skip()
    guard let number = scanner.double(value), number >= 0, number <= 1 else { throw wrong(field, rule, value) }
  }

  private func wrong(_ field: StaticString, _ rule: String, _ value: JSONSpan) -> Rejection {
    Rejection(.badRequestPayload, field: field, rule: rule, offset: value.start)
  }
}
