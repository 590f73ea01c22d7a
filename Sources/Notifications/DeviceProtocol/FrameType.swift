/// The frames that a device sends, by the word of their member `type`.
public enum DeviceFrameType: String, Sendable, CaseIterable {
  /// Who it is: the first frame, within its deadline.
  case hello
  /// What it has stored, shown or dropped.
  case ack
  /// What the person did with a notification.
  case response
  /// What the person lets notifications do.
  case settings
  /// The application's categories.
  case categories
  /// The person signed out, or the application was removed.
  case unregister
  /// A new link to an attachment.
  case link
}

/// The frames that the cluster sends, by the word of their member `type`.
public enum ServerFrameType: String, Sendable, CaseIterable {
  /// The answer to hello.
  case welcome
  /// A notification.
  case notify
  /// Identifiers to take away.
  case remove
  /// A response or a request was taken, durably.
  case accepted
  /// A response or a request was not taken, and is not to be sent again.
  case refused
  /// A link to an attachment.
  case linked
  /// What cannot be delivered any more.
  case gap
  /// The connection stands: for devices that cannot see pings.
  case heartbeat
  /// The connection ends soon.
  case goaway
}
