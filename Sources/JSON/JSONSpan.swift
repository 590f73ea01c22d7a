/// The kinds of JSON values.
public enum JSONKind: UInt8, Sendable {
  /// `{…}`
  case object
  /// `[…]`
  case array
  /// `"…"`
  case string
  /// A number, of any size.
  case number
  /// `true`
  case `true`
  /// `false`
  case `false`
  /// `null`
  case null
}

/// The position of a value in the scanned text.
///
/// Offsets are in bytes from the beginning of the text. They include quotes, brackets and braces. A span belongs to its text. Readers check
/// its bounds: with another text they return nonsense or `nil`, but never read outside.
public struct JSONSpan: Sendable, Equatable {
  /// The offset of the value's first byte.
  public let start: Int
  /// The offset after the value's last byte.
  public let end: Int
  /// The kind of value.
  public let kind: JSONKind
  /// Whether it is a string with escapes, so that its characters are not its bytes.
  public let escaped: Bool

  @inlinable
  init(start: Int, end: Int, kind: JSONKind, escaped: Bool = false) {
    self.start = start
    self.end = end
    self.kind = kind
    self.escaped = escaped
  }

  /// The number of bytes of the value in the text.
  @inlinable public var count: Int { end &- start }
}
