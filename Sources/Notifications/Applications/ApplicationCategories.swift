internal import JSON

/// The published categories of an application: the value of a record of `notifications.categories`.
///
/// The key of the record is the application. As JSON: `{"categories": [...]}`. A record without a value means that none are published.
public struct ApplicationCategories: Sendable, Equatable {
  /// The largest value that is read, in bytes.
  public static var valueBytes: Int { 512 << 10 }

  /// The categories. Their identifiers differ.
  public var categories: [NotificationCategory]

  /// Creates the categories of an application.
  public init(_ categories: [NotificationCategory]) { self.categories = categories }

  /// Reads the value of a record.
  public init(json: UnsafeRawBufferPointer) throws(FieldError) {
    let reader = try ObjectReader(parsing: json, atMost: Self.valueBytes)
    categories = try reader.required("categories", try NotificationCategory.list(reader))
  }

  /// The value of the record; `nil` without categories.
  public var value: [UInt8]? {
    guard !categories.isEmpty else { return nil }
    var json = JSONWriter(capacity: 4_096)
    json.openObject()
    json.member("categories", categories)
    json.closeObject()
    return json.withUnsafeBytes(Array.init)
  }
}
