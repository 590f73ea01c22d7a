internal import JSON

/// The members of `aps` that have rules.
enum APSKey: UInt8, CaseIterable {
  case alert, badge, sound, threadID, category, targetContentID, filterCriteria, contentAvailable, mutableContent, interruptionLevel
  case relevanceScore, staleDate, timestamp, dismissalDate, event, contentState, attributesType, attributes

  /// Its place in a set of members.
  var bit: UInt32 { 1 << UInt32(rawValue) }

  /// How a rejection names it.
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

  /// The known member that a key names.
  static func known(_ key: JSONSpan, _ scanner: JSONScanner) -> APSKey? {
    guard let name = scanner.unescapedBytes(key) else {
      guard let name = scanner.text(key) else { return nil }
      return allCases.first { $0.field.description == "aps.\(name)" }
    }
    guard let candidate = candidate(name) else { return nil }
    return name.equals(candidate.field.bytes.dropping(4)) ? candidate : nil
  }

  /// The only member that the name can be, by its first letter and its length.
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

/// The members of `aps.alert` that have rules.
struct AlertMember {
  let name: StaticString
  let field: StaticString
  /// An array of strings, not a string.
  var isArray = false
  /// Gives the notification a title, a subtitle or a body.
  var isText = false

  static let all: [AlertMember] = [
    AlertMember(name: "title", field: "aps.alert.title", isText: true),
    AlertMember(name: "body", field: "aps.alert.body", isText: true),
    AlertMember(name: "subtitle", field: "aps.alert.subtitle", isText: true),
    AlertMember(name: "launch-image", field: "aps.alert.launch-image"),
    AlertMember(name: "title-loc-key", field: "aps.alert.title-loc-key", isText: true),
    AlertMember(name: "title-loc-args", field: "aps.alert.title-loc-args", isArray: true),
    AlertMember(name: "subtitle-loc-key", field: "aps.alert.subtitle-loc-key", isText: true),
    AlertMember(name: "subtitle-loc-args", field: "aps.alert.subtitle-loc-args", isArray: true),
    AlertMember(name: "loc-key", field: "aps.alert.loc-key", isText: true),
    AlertMember(name: "loc-args", field: "aps.alert.loc-args", isArray: true),
  ]
}
