public import JSON

/// Numbers over which unchecked arithmetic and conversions trap.
public enum ExtremeNumbers {
  /// Signed 64-bit integers at the ends of what programs compute with.
  public static let integers: [Int64] = [
    .min, .min + 1, -1 << 53, -1, 0, 1, 1 << 16, 1 << 31, 1 << 32, 1 << 53, 253_402_300_800_000, .max / 1000, .max / 1000 + 1, .max - 1,
    .max,
  ]

  /// The same in JSON, with what no integer holds, and texts that look like numbers.
  public static let values: [JSONValue] =
    integers.map { .integer($0) }
    + ["18446744073709551615", "9223372036854775808", "9.3e18", "1e308", "-1e308", "1e-308", "0.5", "-0"].map { .number($0) }
    + ["NaN", "Infinity", "9223372036854775807", ""].map { .string($0) }

  /// What comes of a JSON value when one of its numbers is replaced by an extreme one, or all of them by the same.
  public static func variants(of value: JSONValue) -> [JSONValue] { one(of: value) + values.map { all(of: value, $0) } }

  /// What comes of a JSON text.
  public static func variants(of text: String) throws(JSONError) -> [JSONValue] { variants(of: try JSONValue(parsing: text)) }

  private static func one(of value: JSONValue) -> [JSONValue] {
    switch value {
    case .number: values
    case .object(let members):
      members.indices.flatMap { index in
        one(of: members[index].value).map { variant in
          var members = members
          members[index].value = variant
          return .object(members)
        }
      }
    case .array(let elements):
      elements.indices.flatMap { index in
        one(of: elements[index]).map { variant in
          var elements = elements
          elements[index] = variant
          return .array(elements)
        }
      }
    case .string, .bool, .null: []
    }
  }

  private static func all(of value: JSONValue, _ extreme: JSONValue) -> JSONValue {
    switch value {
    case .number: extreme
    case .object(let members): .object(members.map { .init(key: $0.key, value: all(of: $0.value, extreme)) })
    case .array(let elements): .array(elements.map { all(of: $0, extreme) })
    case .string, .bool, .null: value
    }
  }
}
