internal import JSON

/// Why a request is not carried out, in the words of Apple's push service.
///
/// The raw values are those that APNs answers with; `FeatureNotEnabled` also says that this version does not have it yet.
public enum RejectionReason: String, Sendable, CaseIterable {
  /// `apns-collapse-id` is empty, too long, or no plain text.
  case badCollapseID = "BadCollapseId"
  /// The target names no device, or its scheme is unknown.
  case badDeviceToken = "BadDeviceToken"
  /// `apns-expiration` is no time.
  case badExpirationDate = "BadExpirationDate"
  /// `apns-id` is no UUID.
  case badMessageID = "BadMessageId"
  /// `apns-priority` is none of 10, 5 and 1, or does not go with the push type.
  case badPriority = "BadPriority"
  /// `apns-topic` is no application, or the suffix of its push type is missing.
  case badTopic = "BadTopic"
  /// The device belongs to another application.
  case deviceTokenNotForTopic = "DeviceTokenNotForTopic"
  /// A header of the contract stands twice; a `traceparent` may.
  case duplicateHeaders = "DuplicateHeaders"
  /// `apns-push-type` is unknown.
  case invalidPushType = "InvalidPushType"
  /// Neither a target nor a record key.
  case missingDeviceToken = "MissingDeviceToken"
  /// No `apns-topic`.
  case missingTopic = "MissingTopic"
  /// There is no payload.
  case payloadEmpty = "PayloadEmpty"
  /// The application is not served here.
  case topicDisallowed = "TopicDisallowed"
  /// The payload is larger than the limit.
  case payloadTooLarge = "PayloadTooLarge"
  /// The device's registration has expired.
  case expiredToken = "ExpiredToken"
  /// The device is not registered.
  case unregistered = "Unregistered"
  /// The target's rate limit is reached.
  case tooManyRequests = "TooManyRequests"
  /// The request needs what this version or this cluster does not have.
  case featureNotEnabled = "FeatureNotEnabled"
  /// A header that is none of Apple's has a wrong value.
  case badRequestParams = "BadRequestParams"
  /// The payload is no JSON object with an `aps` object of the known shape.
  case badRequestPayload = "BadRequestPayload"
  /// A broadcast without a channel.
  case missingChannelID = "MissingChannelId"
  /// The channel's name is no name.
  case badChannelID = "BadChannelId"
  /// The channel does not exist.
  case channelNotRegistered = "ChannelNotRegistered"
  /// The cluster failed at it; it may be published again.
  case internalServerError = "InternalServerError"
}

/// Why a request is not carried out: the reason, which part of it, and the rule that it breaks.
///
/// It may be kept and logged: of the record it holds at most the plain name of an unknown field, the rest is the program's own words.
public struct Rejection: Error, Sendable, CustomStringConvertible {
  /// The reason in Apple's words.
  public let reason: RejectionReason
  /// The header, or the member of the payload (`aps.badge`).
  public let field: StaticString
  /// The rule as a sentence that says what to do.
  public let rule: String
  /// For a payload or a header of JSON the offset of the fault in it, in bytes; `nil` for the rest.
  public let offset: Int?

  /// A rejection of one field.
  public init(_ reason: RejectionReason, field: StaticString, rule: String, offset: Int? = nil) {
    self.reason = reason
    self.field = field
    self.rule = rule
    self.offset = offset
  }

  /// A rejection of a field that cannot be read as JSON: nesting too deep is no fault of the syntax, and has a rule of its own.
  init(_ reason: RejectionReason, field: StaticString, _ error: any Error, rule: String, tooDeep: String) {
    let error = error as? JSONError
    self.init(reason, field: field, rule: error?.reason == .tooDeep ? tooDeep : rule, offset: error?.offset)
  }

  /// Adds a sentence that names an unknown field: it may be what the sender meant to satisfy the rule with.
  public func naming(_ unknown: UnknownField?) -> Rejection {
    unknown.map { Rejection(reason, field: field, rule: "\(rule) \($0.sentence)", offset: offset) } ?? self
  }

  /// Whether the same record might pass later: no, but for a target whose rate limit is reached or a failure of the cluster.
  public var isRetriable: Bool { reason == .tooManyRequests || reason == .internalServerError }

  /// Reason, field, rule.
  public var description: String { "\(reason.rawValue): \(field): \(rule)" + (offset.map { " (byte \($0))" } ?? "") }
}
