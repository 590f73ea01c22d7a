public import JSON

/// A name from outside, compared by its bytes.
///
/// Users, applications, collapse ids, identifiers, categories, actions, channels and workers have names. Kafka and Redis compare the UTF-8
/// bytes, and so must all other code. `String` treats texts as equal that Unicode calls equivalent, such as the Kelvin sign and the letter
/// K. A name cannot be compared with a `String`, so the compiler finds each such attempt.
public struct Name: Sendable, CustomStringConvertible {
  /// The text, for a person or for the wire.
  public let text: String

  /// Creates a name from a text.
  public init(_ text: String) { self.text = text }

  /// Creates a name from UTF-8. Each invalid sequence becomes U+FFFD.
  public init(_ bytes: UnsafeRawBufferPointer) { text = bytes.text }

  /// The bytes.
  public var utf8: String.UTF8View { text.utf8 }

  /// Passes the bytes to `body`. A text that is stored outside the name is not copied.
  public func withBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
    var text = text
    return try text.withUTF8 { try body(UnsafeRawBufferPointer($0)) }
  }

  /// Whether the name begins with a word of the program.
  public func starts(with word: StaticString) -> Bool { withBytes { $0.starts(with: word) } }

  /// Whether the name has these bytes.
  public func equals(_ bytes: UnsafeRawBufferPointer) -> Bool { utf8.count == bytes.count && withBytes { $0.equals(bytes) } }

  /// The text.
  public var description: String { text }
}

extension Name: JSONRepresentable {
  /// The text as a string.
  public var json: JSONValue { .string(text) }
}

extension Name: Hashable, Comparable {
  /// Whether both have the same bytes.
  public static func == (left: Name, right: Name) -> Bool { right.withBytes(left.equals) }

  /// Hashes the bytes, then a byte that UTF-8 never has. So two names in a row do not run together.
  public func hash(into hasher: inout Hasher) {
    withBytes { hasher.combine(bytes: $0) }
    hasher.combine(0xFF as UInt8)
  }

  /// Compares byte by byte. A name comes before longer names that begin with it.
  public static func < (left: Name, right: Name) -> Bool { left.utf8.lexicographicallyPrecedes(right.utf8) }
}

extension Name: ExpressibleByStringInterpolation {
  /// Creates a name from a text.
  public init(stringLiteral value: String) { self.init(value) }
}

// MARK: JSON

extension JSONWriter {
  /// Writes a member whose value is a name.
  public mutating func member(_ key: StaticString, _ value: Name) { member(key, value.text) }
}

extension JSONValue {
  /// The name, if this is a string.
  public var nameValue: Name? { stringValue.map { Name($0) } }
}

extension ObjectReader {
  /// Reads a name of 1 to `longest` bytes without control characters.
  func name(_ key: String, longest: Int) throws(FieldError) -> Name? { try text(key, longest: longest).map { Name($0) } }

  func requiredName(_ key: String, longest: Int) throws(FieldError) -> Name { Name(try requiredText(key, longest: longest)) }
}
