/// A request's method, by its token.
public struct HTTPMethod: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
  /// The token as it stands on the request line; tokens are case-sensitive (RFC 9110, section 9.1).
  public let rawValue: String

  /// Makes a method from its token.
  public init(rawValue: String) { self.rawValue = rawValue }

  /// Reads a resource.
  public static let get = HTTPMethod(rawValue: "GET")
  /// Reads a resource's header fields.
  static let head = HTTPMethod(rawValue: "HEAD")
  /// Sends content to be processed.
  public static let post = HTTPMethod(rawValue: "POST")

  /// The token.
  public var description: String { rawValue }
}
