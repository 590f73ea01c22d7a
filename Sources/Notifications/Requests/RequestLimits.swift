/// The maximum sizes that a cluster accepts.
public struct RequestLimits: Sendable {
  /// The largest payload, in bytes; 1 to 32,768. APNs: 4,096.
  public var payloadBytes: Int
  /// The largest payload of a VoIP push, in bytes; 1 to 32,768. APNs: 5,120.
  public var voipPayloadBytes: Int
  /// The longest lifetime, in seconds; at most 30 days. It limits later expirations, and replaces an absent one.
  public var longestLifetime: Int64

  /// The largest body of a `remove`, in bytes: an identifier, and other members.
  public static var removeBytes: Int { 16_384 }
  /// The maximum number of identifiers in one `remove`.
  ///
  /// Its revision takes one place in the mailbox.
  public static var removeIdentifiers: Int { 1 }
  /// The maximum depth of objects and arrays in a payload.
  ///
  /// It is one less than the JSON reader accepts, because a frame encloses the payload.
  public static var payloadDepth: Int { 63 }
  /// The maximum depth of objects and arrays in a `trigger`.
  public static var triggerDepth: Int { 8 }
  /// The longest `apns-collapse-id`, in bytes, and so the longest identifier.
  public static var identifierBytes: Int { 64 }
  /// The longest `apns-topic`, in bytes.
  public static var topicBytes: Int { 255 }
  /// The longest user id, in bytes.
  public static var userBytes: Int { 256 }
  /// The longest `trigger`, in bytes.
  public static var triggerBytes: Int { 2_048 }

  /// Creates limits, each within its range.
  public init(payloadBytes: Int = 4_096, voipPayloadBytes: Int = 5_120, longestLifetime: Int64 = 30 * 86_400) {
    self.payloadBytes = min(max(payloadBytes, 1), 32_768)
    self.voipPayloadBytes = min(max(voipPayloadBytes, 1), 32_768)
    self.longestLifetime = min(max(longestLifetime, 1), 30 * 86_400)
  }

  /// Checks the size of a notification's payload.
  func check(payloadBytes count: Int, of type: PushType?) throws(Rejection) {
    guard count > 0 else {
      throw Rejection(.payloadEmpty, field: "payload", rule: "A notification has a payload, a JSON object with a member aps.")
    }
    let maximum = type == .voip ? voipPayloadBytes : payloadBytes
    guard count <= maximum else {
      throw Rejection(.payloadTooLarge, field: "payload", rule: "A payload of this push type takes at most \(maximum) bytes.")
    }
  }

  /// Checks the size of the body of a `remove`.
  static func check(removeBytes count: Int) throws(Rejection) {
    guard count <= removeBytes else {
      throw Rejection(.payloadTooLarge, field: "payload", rule: "The body of a remove takes at most \(removeBytes) bytes.")
    }
  }
}
