/// One emergency stop of an application.
public struct ApplicationStop: Sendable, Hashable {
  /// The reason in the events of requests that the stop ended.
  public static var eventReason: StaticString { "ApplicationStopped" }
  /// The longest text of a person, in bytes.
  public static var textBytes: Int { 200 }

  /// The beginning, in milliseconds since 1970.
  public var from: Int64
  /// When the application was started again, in milliseconds since 1970; nil while it is stopped.
  public var to: Int64?
  /// The person who stopped it.
  public var by: String
  /// The person's reason.
  public var reason: String?
  /// The person who started it again.
  public var endedBy: String?

  /// Creates a stop from its parts.
  public init(from: Int64, to: Int64? = nil, by: String, reason: String? = nil, endedBy: String? = nil) {
    (self.from, self.to, self.by, self.reason, self.endedBy) = (from, to, by, reason, endedBy)
  }

  /// Whether a stop may contain a text.
  public static func isText(_ text: String) -> Bool { ObjectReader.isPlain(text, longest: textBytes) }

  /// Returns as much of a text as a stop may contain.
  public static func cut(_ text: String) -> String { text.prefix(utf8: textBytes) }

  /// Whether the application is still stopped.
  public var isOpen: Bool { to == nil }

  /// Whether a record of this time was published during the stop.
  public func contains(_ time: Int64) -> Bool { from <= time && isBeforeEnd(time) }

  /// Whether a record of this time was published before the stop's end.
  public func isBeforeEnd(_ time: Int64) -> Bool { to.map { time < $0 } ?? true }
}

extension String {
  /// As many of the first scalars as fit into this number of bytes.
  func prefix(utf8 limit: Int) -> String {
    var bytes = 0
    return String(
      unicodeScalars.prefix {
        bytes += $0.utf8.count
        return bytes <= limit
      })
  }
}
