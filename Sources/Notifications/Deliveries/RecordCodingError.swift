/// A field does not fit into its record.
///
/// Fields that `RequestView` accepts always fit. Those of an extension may not.
public struct RecordCodingError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The field.
  public let field: String
  /// The maximum number of bytes of the field.
  public let limit: Int

  /// The field and its limit.
  public var description: String { "the field \(field) takes more than \(limit) bytes; shorten it" }
}
