/// One emergency stop of an application.
public struct ApplicationStop: Sendable, Hashable {
  /// What the events of its requests give as their reason.
  public static var eventReason: StaticString { "ApplicationStopped" }
  /// The longest text of a person that is taken, in bytes.
  public static var textBytes: Int { 200 }

  /// From when on, in milliseconds since 1970.
  public var from: Int64
  /// When the application was started again, in milliseconds since 1970; nil while it is stopped.
  public var to: Int64?
  /// Who stopped it.
  public var by: String
  /// Why, as the person wrote it.
  public var reason: String?
  /// Who started it again.
  public var endedBy: String?

  /// A stop of its parts.
  public init(from: Int64, to: Int64? = nil, by: String, reason: String? = nil, endedBy: String? = nil) {
    (self.from, self.to, self.by, self.reason, self.endedBy) = (from, to, by, reason, endedBy)
  }

  /// Whether a text may stand in a stop.
  public static func isText(_ text: String) -> Bool { ObjectReader.isPlain(text, longest: textBytes) }

  /// As much of a text as may stand in a stop.
  public static func cut(_ text: String) -> String {
    var bytes = 0
    let scalars = text.unicodeScalars.prefix {
      bytes += $0.utf8.count
      return bytes <= textBytes
    }
    return String(scalars)
  }

  /// Whether it goes on.
  public var isOpen: Bool { to == nil }

  /// Whether a record of this time was published while it lasted.
  public func contains(_ time: Int64) -> Bool { from <= time && isBeforeEnd(time) }

  /// Whether a record of this time was published before its end.
  public func isBeforeEnd(_ time: Int64) -> Bool { to.map { time < $0 } ?? true }
}
