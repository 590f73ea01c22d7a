/// Why a notification is shown without one of its attachments.
public struct AttachmentFailure: Error, Sendable, Hashable, CustomStringConvertible {
  /// The kinds of failures.
  public enum Reason: String, Sendable, CaseIterable {
    /// The server does not answer, or the connection was lost.
    case unreachable
    /// The server answers with another status than 200.
    case refused
    /// The link redirects, which a link of the cluster never does.
    case redirected
    /// The link has expired, and the cluster gives no new one.
    case expired
    /// It has more or fewer bytes than the notification says.
    case wrongSize
    /// It is of no type that may be attached, of another type than the notification says, or too large for its type.
    case wrongType
    /// Its content is another one than the notification says.
    case wrongContent
    /// It has not come in time.
    case late
    /// The store has reached its limit.
    case full
    /// The store cannot be written.
    case disk
  }

  /// The kind of failure.
  public let reason: Reason
  /// The reason in one line.
  public let description: String

  init(_ reason: Reason, _ description: String) { (self.reason, self.description) = (reason, description) }
}
