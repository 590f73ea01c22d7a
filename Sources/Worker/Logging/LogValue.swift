public import Notifications

/// A field's value as a log line shows it.
public enum LoggedValue: Sendable, Hashable {
  /// Shown as it is, in quotes if it contains spaces.
  case text(String)
  /// A JSON number.
  case integer(Int64)
  /// A JSON number.
  case number(Double)
  /// A JSON boolean.
  case truth(Bool)
}

/// A value that can be a field of a log line.
///
/// A type with a description conforms by an empty extension.
public protocol LogValue: Sendable {
  /// The value to show; the writer's thread computes it.
  var logged: LoggedValue { get }
}

extension LogValue where Self: CustomStringConvertible {
  /// The description.
  public var logged: LoggedValue { .text(description) }
}

extension String: LogValue {}
extension Name: LogValue {}
extension Substring: LogValue {}
extension StaticString: LogValue {}

extension LogValue where Self: BinaryInteger {
  /// The number; one beyond 64 bits as text.
  public var logged: LoggedValue { Int64(exactly: self).map { .integer($0) } ?? .text(String(self)) }
}

extension Int: LogValue {}
extension Int32: LogValue {}
extension Int64: LogValue {}
extension UInt16: LogValue {}
extension UInt32: LogValue {}
extension UInt64: LogValue {}

extension Double: LogValue {
  /// The number.
  public var logged: LoggedValue { .number(self) }
}

extension Bool: LogValue {
  /// The boolean.
  public var logged: LoggedValue { .truth(self) }
}

extension Duration: LogValue {
  /// As in settings: `500ms`.
  public var logged: LoggedValue { .text(DurationText.text(self)) }
}
