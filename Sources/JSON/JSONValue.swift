/// A JSON text as a tree, for tools, settings and tests. The hot path uses `JSONScanner`.
///
/// It keeps all but white space and the form of escapes: members keep their order and repetitions, and numbers their text.
///
/// Values are equal if their names, characters and numbers have the same bytes. Unicode equivalence does not count.
public enum JSONValue: Sendable {
  /// Members in the order of the text, repeated names included.
  case object([Member])
  /// Elements.
  case array([JSONValue])
  /// Characters, without escapes.
  case string(String)
  /// A number as text, so that no digit is lost.
  case number(String)
  /// `true` or `false`
  case bool(Bool)
  /// `null`
  case null

  /// A member of an object.
  public struct Member: Sendable {
    /// The member's name.
    public var key: String
    /// The member's value.
    public var value: JSONValue

    /// Creates a member.
    public init(key: String, value: JSONValue) {
      self.key = key
      self.value = value
    }
  }

  /// Creates a number.
  public static func integer(_ value: Int64) -> JSONValue { .number(String(value)) }

  /// The value of the member with this name; `nil` if there is none.
  ///
  /// The last of several members counts. The value is `nil` if this is not an object.
  public subscript(key: String) -> JSONValue? {
    guard case .object(let members) = self else { return nil }
    return members.last { $0.key.hasBytes(of: key) }?.value
  }

  /// The element at an index; `nil` without one, or if this is no array.
  public subscript(index: Int) -> JSONValue? {
    guard case .array(let elements) = self, elements.indices.contains(index) else { return nil }
    return elements[index]
  }

  /// The members, if this is an object.
  public var members: [Member]? {
    guard case .object(let members) = self else { return nil }
    return members
  }

  /// The elements, if this is an array.
  public var elements: [JSONValue]? {
    guard case .array(let elements) = self else { return nil }
    return elements
  }

  /// The characters, if this is a string.
  public var stringValue: String? {
    guard case .string(let value) = self else { return nil }
    return value
  }

  /// The integer; `nil` unless this is a number with an exact integer that fits.
  public var integerValue: Int64? { number { $0.integer($1) } }

  /// The nearest double; `nil` unless this is a number that fits.
  public var doubleValue: Double? { number { $0.double($1) } }

  /// The truth value; `nil` unless this is `true` or `false`.
  public var boolValue: Bool? {
    guard case .bool(let value) = self else { return nil }
    return value
  }

  private func number<Value>(_ read: (JSONScanner, JSONSpan) -> Value?) -> Value? {
    guard case .number(let text) = self else { return nil }
    return text.withBytes { bytes in Self.number(bytes).flatMap { read(JSONScanner(bytes), $0) } }
  }

  /// Returns the span of a text that is exactly one number.
  private static func number(_ bytes: UnsafeRawBufferPointer) -> JSONSpan? {
    var scanner = JSONScanner(bytes)
    guard let span = try? scanner.skip(), span.kind == .number, span.count == bytes.count else { return nil }
    return span
  }
}

// MARK: Comparison

extension JSONValue: Equatable {
  /// Whether both have the same kind, bytes and order of members.
  public static func == (left: JSONValue, right: JSONValue) -> Bool {
    switch (left, right) {
    case (.object(let left), .object(let right)): left == right
    case (.array(let left), .array(let right)): left == right
    case (.string(let left), .string(let right)), (.number(let left), .number(let right)): left.hasBytes(of: right)
    case (.bool(let left), .bool(let right)): left == right
    case (.null, .null): true
    default: false
    }
  }
}

extension JSONValue.Member: Equatable {
  /// Whether both have the same name, byte for byte, and the same value.
  public static func == (left: JSONValue.Member, right: JSONValue.Member) -> Bool {
    left.key.hasBytes(of: right.key) && left.value == right.value
  }
}

extension String {
  /// Whether both have the same bytes. `==` would accept equivalent texts of Unicode.
  func hasBytes(of other: String) -> Bool { utf8.count == other.utf8.count && utf8.elementsEqual(other.utf8) }

  /// Passes the UTF-8 to `body`, valid during the call.
  package func withBytes<Result, Failure>(_ body: (UnsafeRawBufferPointer) throws(Failure) -> Result) throws(Failure) -> Result {
    try utf8Span.span.bytes.withUnsafeBytes(body)
  }
}

// MARK: Text

extension JSONValue: JSONWritable {
  /// Reads a complete text, as deep as the scanner allows.
  public init(parsing text: UnsafeRawBufferPointer) throws(JSONError) {
    var scanner = JSONScanner(text)
    self = try Self.next(of: &scanner)
    try scanner.finish()
  }

  /// Reads a complete text, as deep as the scanner allows.
  public init(parsing text: String) throws(JSONError) {
    self = try text.withBytes { bytes throws(JSONError) in try JSONValue(parsing: bytes) }
  }

  private static func next(of scanner: inout JSONScanner) throws(JSONError) -> JSONValue {
    switch scanner.peekKind() {
    case .object:
      var members: [Member] = []
      try scanner.openObject()
      while let key = try scanner.nextKey() {
        members.append(Member(key: scanner.text(key) ?? "", value: try next(of: &scanner)))
      }
      return .object(members)
    case .array:
      var elements: [JSONValue] = []
      try scanner.openArray()
      while try scanner.nextElement() { elements.append(try next(of: &scanner)) }
      return .array(elements)
    default:
      let span = try scanner.skip()
      switch span.kind {
      case .string: return .string(scanner.text(span) ?? "")
      case .number: return .number(String(decoding: scanner.source(span), as: UTF8.self))
      case .true, .false: return .bool(span.kind == .true)
      default: return .null
      }
    }
  }

  /// Appends the value to a text. A malformed `number` becomes `null`, so the text is always valid.
  public func write(to writer: inout JSONWriter) {
    switch self {
    case .object(let members):
      writer.openObject()
      for member in members {
        writer.key(text: member.key)
        member.value.write(to: &writer)
      }
      writer.closeObject()
    case .array(let elements):
      writer.openArray()
      for element in elements { element.write(to: &writer) }
      writer.closeArray()
    case .string(let value): writer.string(value)
    case .number(let text): text.withBytes { if Self.number($0) != nil { writer.raw($0) } else { writer.null() } }
    case .bool(let value): writer.bool(value)
    case .null: writer.null()
    }
  }

  /// The value as text on one line, without white space.
  public var text: String {
    var writer = JSONWriter()
    write(to: &writer)
    return writer.text
  }
}

// MARK: Literals

extension JSONValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral, ExpressibleByFloatLiteral,
  ExpressibleByNilLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
  /// Creates a string.
  public init(stringLiteral value: String) { self = .string(value) }
  /// Creates a number.
  public init(integerLiteral value: Int64) { self = .integer(value) }
  /// Creates a number.
  public init(floatLiteral value: Double) { self = value.isFinite ? .number(value.description) : .null }
  /// Creates a `true` or `false`.
  public init(booleanLiteral value: Bool) { self = .bool(value) }
  /// Creates a `null`.
  public init(nilLiteral: ()) { self = .null }
  /// Creates an array.
  public init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
  /// Creates an object.
  public init(dictionaryLiteral elements: (String, JSONValue)...) {
    self = .object(elements.map { Member(key: $0.0, value: $0.1) })
  }
}
