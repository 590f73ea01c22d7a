internal import JSON

/// The members of `aps` that have rules.
enum APSKey: UInt8, CaseIterable {
  case alert, badge, sound, threadID, category, targetContentID, filterCriteria, contentAvailable, mutableContent, interruptionLevel
  case relevanceScore, staleDate, timestamp, dismissalDate, event, contentState, attributesType, attributes

  /// The member's bit in a set of members.
  var bit: UInt32 { 1 << UInt32(rawValue) }

  /// The member's name in a rejection.
  var field: StaticString {
    switch self {
    case .alert: "aps.alert"
    case .badge: "aps.badge"
    case .sound: "aps.sound"
    case .threadID: "aps.thread-id"
    case .category: "aps.category"
    case .targetContentID: "aps.target-content-id"
    case .filterCriteria: "aps.filter-criteria"
    case .contentAvailable: "aps.content-available"
    case .mutableContent: "aps.mutable-content"
    case .interruptionLevel: "aps.interruption-level"
    case .relevanceScore: "aps.relevance-score"
    case .staleDate: "aps.stale-date"
    case .timestamp: "aps.timestamp"
    case .dismissalDate: "aps.dismissal-date"
    case .event: "aps.event"
    case .contentState: "aps.content-state"
    case .attributesType: "aps.attributes-type"
    case .attributes: "aps.attributes"
    }
  }

  /// Finds the member of a key; nil if it is unknown.
  static func known(_ key: JSONSpan, _ scanner: JSONScanner) -> APSKey? {
    guard let name = scanner.unescapedBytes(key) else {
      guard let name = scanner.text(key) else { return nil }
      return allCases.first { $0.field.description == "aps.\(name)" }
    }
    guard let candidate = candidate(name) else { return nil }
    return name.equals(candidate.field.bytes.dropping(4)) ? candidate : nil
  }

  /// Whether Apple knows the member but the cluster has no rule for it. It is not misspelt.
  static func hasNoRule(_ key: JSONSpan, _ scanner: JSONScanner) -> Bool {
    scanner.matches(key, "content-changed") || scanner.matches(key, "input-push-token") || scanner.matches(key, "input-push-channel")
      || scanner.matches(key, "url-args")
  }

  /// Finds the only possible member for a name, by its first letter and length.
  @inline(__always)
  private static func candidate(_ name: UnsafeRawBufferPointer) -> APSKey? {
    guard let first = name.first else { return nil }
    switch first {
    case UInt8(ascii: "a"): return name.count == 5 ? .alert : name.count == 10 ? .attributes : .attributesType
    case UInt8(ascii: "b"): return .badge
    case UInt8(ascii: "c"): return name.count == 8 ? .category : name.count == 13 ? .contentState : .contentAvailable
    case UInt8(ascii: "d"): return .dismissalDate
    case UInt8(ascii: "e"): return .event
    case UInt8(ascii: "f"): return .filterCriteria
    case UInt8(ascii: "i"): return .interruptionLevel
    case UInt8(ascii: "m"): return .mutableContent
    case UInt8(ascii: "r"): return .relevanceScore
    case UInt8(ascii: "s"): return name.count == 5 ? .sound : .staleDate
    case UInt8(ascii: "t"): return name.count == 17 ? .targetContentID : name[name.count - 1] == UInt8(ascii: "d") ? .threadID : .timestamp
    default: return nil
    }
  }
}

/// A member of `aps.alert` that Apple documents.
struct AlertMember {
  enum Shape {
    /// A string that gives the notification a title, a subtitle or a body.
    case text
    case string
    case strings
    /// Any value, any number of times: the cluster has no rule for it.
    case free
  }

  let name: StaticString
  let field: StaticString
  let shape: Shape
  /// Whether the text may be an object in a Live Activity, with key and arguments.
  var mayBeLocalized = false

  static let all: [AlertMember] = [
    AlertMember(name: "title", field: "aps.alert.title", shape: .text, mayBeLocalized: true),
    AlertMember(name: "body", field: "aps.alert.body", shape: .text, mayBeLocalized: true),
    AlertMember(name: "subtitle", field: "aps.alert.subtitle", shape: .text),
    AlertMember(name: "launch-image", field: "aps.alert.launch-image", shape: .string),
    AlertMember(name: "title-loc-key", field: "aps.alert.title-loc-key", shape: .text),
    AlertMember(name: "title-loc-args", field: "aps.alert.title-loc-args", shape: .strings),
    AlertMember(name: "subtitle-loc-key", field: "aps.alert.subtitle-loc-key", shape: .text),
    AlertMember(name: "subtitle-loc-args", field: "aps.alert.subtitle-loc-args", shape: .strings),
    AlertMember(name: "loc-key", field: "aps.alert.loc-key", shape: .text),
    AlertMember(name: "loc-args", field: "aps.alert.loc-args", shape: .strings),
    AlertMember(name: "sound", field: "aps.alert.sound", shape: .free),
    AlertMember(name: "action", field: "aps.alert.action", shape: .free),
    AlertMember(name: "action-loc-key", field: "aps.alert.action-loc-key", shape: .free),
    AlertMember(name: "summary-arg", field: "aps.alert.summary-arg", shape: .free),
    AlertMember(name: "summary-arg-count", field: "aps.alert.summary-arg-count", shape: .free),
  ]
}

/// The members of `aps.sound` when it is an object.
enum SoundMember: UInt8, CaseIterable {
  case critical, name, volume

  /// The member's name in a rejection.
  var field: StaticString { row.field }

  /// The member's word in the payload.
  var word: StaticString { row.word }

  private var row: (field: StaticString, word: StaticString) {
    switch self {
    case .critical: ("aps.sound.critical", "critical")
    case .name: ("aps.sound.name", "name")
    case .volume: ("aps.sound.volume", "volume")
    }
  }
}
