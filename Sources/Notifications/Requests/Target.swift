/// Whom a request is for, borrowed from its record.
public enum Target {
  /// One device: its token's digits as they were written, of either case; see ``DeviceToken/append(_:to:)``.
  case device(UnsafeRawBufferPointer)
  /// All devices of a person: the user's id.
  case user(UnsafeRawBufferPointer)

  /// Reads `device:<token>` or `user:<id>`.
  static func read(_ text: UnsafeRawBufferPointer, field: StaticString) throws(Rejection) -> Target {
    if text.starts(with: "device:") {
      let token = text.dropping(7)
      guard DeviceToken.isValid(token) else {
        throw Rejection(.badDeviceToken, field: field, rule: "A device token is an even number of hexadecimal digits, 64 to 512.")
      }
      return .device(token)
    }
    if text.starts(with: "user:") {
      let user = text.dropping(5)
      guard !user.isEmpty, user.count <= RequestLimits.userBytes, user.isPlainText else {
        throw Rejection(.badDeviceToken, field: field, rule: "A user id is 1 to 256 bytes of UTF-8 without control characters.")
      }
      return .user(user)
    }
    if text.starts(with: "channel:") {
      throw Rejection(.featureNotEnabled, field: field, rule: "Broadcasts to a channel are not available in this version.")
    }
    throw Rejection(
      .badDeviceToken, field: field, rule: "A target is device:<token> or user:<id>; this one has neither of these schemes.")
  }

  /// The stable hash of the user, or 0 for a device.
  public var userHash: UInt64 {
    switch self {
    case .device: 0
    case .user(let user): StableHash.user(user)
    }
  }
}
