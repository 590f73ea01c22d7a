/// A Swift value that has a JSON form: printers write `["records": count]` with it.
public protocol JSONRepresentable: Sendable {
  /// The JSON form.
  var json: JSONValue { get }
}

extension JSONValue {
  /// The members of an object as Swift values.
  public typealias Members = KeyValuePairs<String, (any JSONRepresentable)?>

  /// Creates an object. A member without a value is `null`.
  public static func object(_ members: Members) -> JSONValue { .object(members.map { Member($0.key, $0.value) }) }

  /// Creates an object. A member without a value is left out.
  public static func object(present members: Members) -> JSONValue {
    .object(members.compactMap { member in member.value.map { Member(member.key, $0) } })
  }

  /// The object with further members after its own. A member without a value is `null`.
  public func appending(_ members: Members) -> JSONValue { appending(contentsOf: .object(members)) }

  /// The object with the members of another one after its own.
  public func appending(contentsOf other: JSONValue) -> JSONValue { .object((members ?? []) + (other.members ?? [])) }
}

extension JSONValue.Member {
  /// Creates a member of a Swift value, which is `null` without one.
  public init(_ key: String, _ value: (any JSONRepresentable)?) { self.init(key: key, value: value?.json ?? .null) }
}

extension JSONValue: JSONRepresentable {
  /// The value itself.
  public var json: JSONValue { self }
}

extension JSONRepresentable where Self: BinaryInteger {
  /// A number.
  public var json: JSONValue { .number(String(self)) }
}
extension Int: JSONRepresentable {}
extension Int32: JSONRepresentable {}
extension Int64: JSONRepresentable {}
extension UInt64: JSONRepresentable {}

extension Double: JSONRepresentable {
  /// A number; `null` if it is not finite.
  public var json: JSONValue { JSONValue(floatLiteral: self) }
}

extension Bool: JSONRepresentable {
  /// `true` or `false`.
  public var json: JSONValue { .bool(self) }
}

extension String: JSONRepresentable {
  /// A string.
  public var json: JSONValue { .string(self) }
}

extension Array: JSONRepresentable where Element: JSONRepresentable {
  /// An array.
  public var json: JSONValue { .array(map(\.json)) }
}
