/// An entity tag of a header field (RFC 9110, section 8.8.3).
struct EntityTag {
  private static let quote = UInt8(ascii: "\"")

  let isWeak: Bool
  /// The text between the quotes.
  private let opaque: Substring.UTF8View

  /// Whether `text` may stand between the quotes. This server sends only ASCII.
  static func isOpaque(_ text: String) -> Bool { text.utf8.allSatisfy { isOpaque($0) && $0 < 0x7F } }

  private static func isOpaque(_ byte: UInt8) -> Bool { byte == 0x21 || byte >= 0x23 && byte != 0x7F }

  /// Reads a value that is one tag; nil for anything else.
  init?(_ value: String) {
    var rest = Substring(value).utf8
    guard let tag = Self.read(&rest), rest.isEmpty else { return nil }
    self = tag
  }

  private init(isWeak: Bool, opaque: Substring.UTF8View) {
    self.isWeak = isWeak
    self.opaque = opaque
  }

  /// The tags of a list; nil if it is malformed. Tags may contain commas, so the list is not cut at each.
  static func list(_ value: String) -> [EntityTag]? {
    var tags: [EntityTag] = []
    var rest = Substring(value).utf8
    while true {
      rest = rest.drop { $0 == 0x20 || $0 == 0x09 || $0 == UInt8(ascii: ",") }
      if rest.isEmpty { return tags }
      guard let tag = read(&rest) else { return nil }
      tags.append(tag)
      rest = rest.drop { $0 == 0x20 || $0 == 0x09 }
      guard rest.isEmpty || rest.first == UInt8(ascii: ",") else { return nil }
    }
  }

  private static func read(_ rest: inout Substring.UTF8View) -> EntityTag? {
    let isWeak = rest.starts(with: "W/".utf8)
    if isWeak { rest.removeFirst(2) }
    guard rest.popFirst() == quote, let end = rest.firstIndex(of: quote) else { return nil }
    let opaque = rest[..<end]
    guard opaque.allSatisfy(isOpaque) else { return nil }
    rest = rest[rest.index(after: end)...]
    return EntityTag(isWeak: isWeak, opaque: opaque)
  }

  /// The weak comparison: equal text between the quotes, byte by byte.
  func matchesWeakly(_ text: String) -> Bool { opaque.elementsEqual(text.utf8) }

  /// The strong comparison with a strong tag.
  func matches(_ text: String) -> Bool { !isWeak && matchesWeakly(text) }
}
