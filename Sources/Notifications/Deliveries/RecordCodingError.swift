/// A field does not fit into the record it is written to.
///
/// What `RequestView` accepts always fits; what an extension made of it may not.
public struct RecordCodingError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The field.
  public let field: String
  /// The maximum number of bytes that it may take.
  public let limit: Int

  /// Always false: the same field is as long the next time.
  public var isRetriable: Bool { false }

  /// What does not fit.
  public var description: String { "the field \(field) takes more than \(limit) bytes; shorten it" }
}
