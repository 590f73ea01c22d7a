public import JSON

/// A text from outside that names something, compared by its bytes.
///
/// Users, applications, collapse ids, identifiers, categories, actions, channels and workers are names. Kafka and Redis compare the bytes
/// of their UTF-8, and so must everything else: `String` takes texts that Unicode calls equivalent for one, such as the Kelvin sign and
/// the letter K. A name is never compared with a `String`, so that the compiler finds the place where somebody tries.
public struct Name: Sendable, CustomStringConvertible {
  /// The text, for a person or for the wire.
  public let text: String

  /// A name of this text.
  public init(_ text: String) { self.text = text }

  /// A name of these bytes, which are UTF-8: of others each broken sequence becomes U+FFFD.
  public init(_ bytes: UnsafeRawBufferPointer) { text = bytes.text }

  /// The bytes.
  public var utf8: String.UTF8View { text.utf8 }

  /// Lends the bytes, without a copy of a text that does not fit into the name itself.
  public func withBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
    var text = text
    return try text.withUTF8 { try body(UnsafeRawBufferPointer($0)) }
  }

  /// Whether the first bytes are those of the program's own word.
  public func starts(with word: StaticString) -> Bool { withBytes { $0.starts(with: word) } }

  /// Whether these are the name's bytes.
  public func equals(_ bytes: UnsafeRawBufferPointer) -> Bool { utf8.count == bytes.count && withBytes { $0.equals(bytes) } }

  /// The text.
  public var description: String { text }
}

extension Name: Hashable, Comparable {
  /// Whether both have the same bytes.
  public static func == (left: Name, right: Name) -> Bool { right.withBytes(left.equals) }

  /// Hashes the bytes, and a byte that no UTF-8 has: so two names in a row do not run together.
  public func hash(into hasher: inout Hasher) {
    withBytes { hasher.combine(bytes: $0) }
    hasher.combine(0xFF as UInt8)
  }

  /// Byte by byte; a name comes before a longer one that begins with it.
  public static func < (left: Name, right: Name) -> Bool { left.utf8.lexicographicallyPrecedes(right.utf8) }
}

extension Name: ExpressibleByStringInterpolation {
  /// A name of this text.
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
  /// A name of 1 to `longest` bytes without control characters.
  func name(_ key: String, longest: Int) throws(FieldError) -> Name? { try text(key, longest: longest).map { Name($0) } }

  func requiredName(_ key: String, longest: Int) throws(FieldError) -> Name { Name(try requiredText(key, longest: longest)) }
}
