/// Why the media store cannot do a request.
public struct MediaError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The kind of failure.
  public enum Code: Sendable, Hashable {
    /// It has reached its limit.
    case full
    /// The file system refuses.
    case unavailable
  }

  /// The kind of failure.
  public let code: Code
  /// The reason in one line, with the operator's own path and the system's words.
  public let message: String

  init(_ code: Code, _ message: String) { (self.code, self.message) = (code, message) }

  /// The message.
  public var description: String { message }
}
