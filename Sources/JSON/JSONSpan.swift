/// The seven kinds of value that a JSON text holds.
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

/// Where one value stands in the scanned text.
///
/// Offsets are in bytes from the beginning of the text; quotes, brackets and braces are included. A span is only meaningful with
/// the text it comes from; readers check its bounds, so a foreign one gives nonsense or `nil` but never reads outside.
public struct JSONSpan: Sendable, Equatable {
  /// The offset of the value's first byte.
  public let start: Int
  /// The offset after the value's last byte.
  public let end: Int
  /// What kind of value it is.
  public let kind: JSONKind
  /// Whether it is a string with at least one escape, so that its characters are not its bytes.
  public let escaped: Bool

  @inlinable
  init(start: Int, end: Int, kind: JSONKind, escaped: Bool = false) {
    self.start = start
    self.end = end
    self.kind = kind
    self.escaped = escaped
  }

  /// How many bytes the value takes in the text.
  @inlinable public var count: Int { end &- start }
}
