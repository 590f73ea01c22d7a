/// A path to a JSON value, by RFC 6901, such as `/aps/alert/title`.
public struct JSONPointer: Sendable, CustomStringConvertible {
  /// The names and indexes of the path, without escapes; none for the complete value.
  public let tokens: [String]

  /// The longest text, in bytes.
  public static var longest: Int { 1_024 }
  /// The maximum number of tokens.
  public static var deepest: Int { 64 }

  /// Reads a pointer; `nil` if the text is not one.
  ///
  /// The text is empty or begins with `/`, and contains `~` only in `~0` and `~1`.
  public init?(_ text: String) {
    guard text.utf8.count <= Self.longest, text.isEmpty || text.utf8.first == UInt8(ascii: "/") else { return nil }
    var tokens: [String] = []
    // By scalars: a slash and a combining character after it would be one character.
    for part in text.unicodeScalars.split(separator: "/", omittingEmptySubsequences: false).dropFirst() {
      guard tokens.count < Self.deepest, let token = Self.unescaped(Substring(part)) else { return nil }
      tokens.append(token)
    }
    self.tokens = tokens
  }

  private static func unescaped(_ part: Substring) -> String? {
    guard part.unicodeScalars.contains("~") else { return String(part) }
    var token = ""
    var characters = part.unicodeScalars.makeIterator()
    while let character = characters.next() {
      guard character == "~" else {
        token.unicodeScalars.append(character)
        continue
      }
      switch characters.next() {
      case "0": token.append("~")
      case "1": token.append("/")
      default: return nil
      }
    }
    return token
  }

  /// The pointer as text.
  public var description: String {
    var text = ""
    for token in tokens {
      text.append("/")
      // By scalars, as the pointer was read.
      for scalar in token.unicodeScalars {
        switch scalar {
        case "~": text.append("~0")
        case "/": text.append("~1")
        default: text.unicodeScalars.append(scalar)
        }
      }
    }
    return text
  }

  /// Reads a token as an index of an array: digits without a leading zero.
  static func index(_ token: String) -> Int? {
    guard token.utf8.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }), token == "0" || token.utf8.first != UInt8(ascii: "0")
    else {
      return nil
    }
    return Int(token)
  }
}

extension JSONPointer: Equatable {
  /// Whether both have the same names, byte for byte.
  public static func == (left: JSONPointer, right: JSONPointer) -> Bool { left.tokens.elementsEqual(right.tokens) { $0.hasBytes(of: $1) } }
}

extension JSONValue {
  /// The value at a path; `nil` if there is none.
  public subscript(pointer: JSONPointer) -> JSONValue? {
    var value = self
    for token in pointer.tokens {
      switch value {
      case .object:
        guard let member = value[token] else { return nil }
        value = member
      case .array(let elements):
        guard let index = JSONPointer.index(token), elements.indices.contains(index) else { return nil }
        value = elements[index]
      default: return nil
      }
    }
    return value
  }

  /// Sets the value at a path. Missing objects on the path are created. Arrays get no new elements.
  ///
  /// - Returns: false, without a change, if part of the path is neither an object nor an existing element.
  public mutating func set(_ value: JSONValue, at pointer: JSONPointer) -> Bool { set(value, pointer.tokens[...]) }

  private mutating func set(_ value: JSONValue, _ tokens: ArraySlice<String>) -> Bool {
    guard let token = tokens.first else {
      self = value
      return true
    }
    if let index = JSONPointer.index(token), case .array = self {
      return withElement(index) { $0.set(value, tokens.dropFirst()) } ?? false
    }
    return withMember(token) { member in
      guard var known = member else {
        var made = JSONValue.object([])
        guard tokens.count == 1 || made.set(value, tokens.dropFirst()) else { return false }
        member = tokens.count == 1 ? value : made
        return true
      }
      member = .null
      defer { member = known }
      return known.set(value, tokens.dropFirst())
    } ?? false
  }
}
