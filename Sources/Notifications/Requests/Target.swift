/// The target of a request, borrowed from its record.
public enum Target {
  /// One device: the digits of its token as written, in either case; see ``DeviceToken/append(_:to:)``.
  case device(UnsafeRawBufferPointer)
  /// All devices of a person: the user's id.
  case user(UnsafeRawBufferPointer)

  /// The forms of a target, for the sentence of a rule.
  static let forms = "device:<token> or user:<id>"

  /// Reads a target; nil if it breaks a rule.
  public init?(_ text: UnsafeRawBufferPointer) {
    guard let target = try? Self.read(text, field: "target") else { return nil }
    self = target
  }

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
      .badDeviceToken, field: field, rule: "A target is \(forms); this one has neither of these schemes.")
  }

  /// The token, if the target is a device.
  public var device: UnsafeRawBufferPointer? { if case .device(let token) = self { token } else { nil } }

  /// The user's id, if the target is a person.
  public var user: UnsafeRawBufferPointer? { if case .user(let user) = self { user } else { nil } }

  /// The user's number, or 0 for a device.
  public var userHash: UInt64 { user.map { NameHash.user($0) } ?? 0 }

  /// The stable hash of the target, the same however it is written.
  public var hash: UInt64 {
    switch self {
    case .device(let token): DeviceToken.hash(token)
    case .user(let user): StableHash.hash(user, seed: 1)
    }
  }

  /// The target as text, with the token in lower case.
  public var name: Name {
    switch self {
    case .device(let token): "device:\(DeviceToken(token)?.text ?? "")"
    case .user(let user): "user:\(Name(user))"
    }
  }
}
