/// A copied reply, for cold paths.
public enum RedisValue: Sendable, Hashable {
  /// Nothing: no such key or field.
  case null
  /// A number.
  case integer(Int64)
  /// A status such as `OK`.
  case status(String)
  /// A value of any bytes.
  case bytes([UInt8])
  /// Several replies.
  case array([RedisValue])
  /// An error among the elements of an array. A complete error reply is thrown.
  case error(RedisError)

  /// The number, or the number in the bytes; nil for another kind.
  public var integer: Int64? {
    switch self {
    case .integer(let value): value
    case .bytes, .status: text.flatMap { Int64($0) }
    case .null, .array, .error: nil
    }
  }

  /// The bytes or status as text, with invalid UTF-8 replaced; nil for another kind.
  public var text: String? {
    switch self {
    case .bytes(let bytes): String(decoding: bytes, as: UTF8.self)
    case .status(let text): text
    case .null, .integer, .array, .error: nil
    }
  }

  /// The bytes; nil for another kind.
  public var bytes: [UInt8]? {
    if case .bytes(let bytes) = self { bytes } else { nil }
  }

  /// The elements; nil if it is not an array.
  public var array: [RedisValue]? {
    if case .array(let elements) = self { elements } else { nil }
  }
}
