/// The frames that a device sends. The raw value is the member `type`.
public enum DeviceFrameType: String, Sendable, CaseIterable {
  /// Says who the device is. It is the first frame, and has a deadline.
  case hello
  /// Names the deliveries that the device stored, showed or dropped.
  case ack
  /// Tells what the person did with a notification.
  case response
  /// Changes settings of the person or of the device.
  case settings
  /// Changes the application's categories.
  case categories
  /// The person signed out, or the application was removed.
  case unregister
  /// Asks for a new link to an attachment.
  case link
}

/// The frames that the cluster sends. The raw value is the member `type`.
public enum ServerFrameType: String, Sendable, CaseIterable {
  /// The answer to `hello`.
  case welcome
  /// A notification.
  case notify
  /// Notifications to remove.
  case remove
  /// The cluster accepted a response or a request, durably.
  case accepted
  /// The cluster refused a response or a request. The device does not repeat it.
  case refused
  /// A link to an attachment.
  case linked
  /// What can no longer be delivered.
  case gap
  /// A sign of life, for devices that cannot see pings.
  case heartbeat
  /// The connection will end soon.
  case goaway
}
