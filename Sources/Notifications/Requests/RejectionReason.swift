internal import JSON

/// Why a request is rejected, in the words of Apple's push service.
///
/// APNs answers with these values. `FeatureNotEnabled` also covers features that this version does not have yet.
public enum RejectionReason: String, Sendable, CaseIterable {
  /// `apns-collapse-id` is empty, too long, or not plain text.
  case badCollapseID = "BadCollapseId"
  /// The target names no device, or its scheme is unknown.
  case badDeviceToken = "BadDeviceToken"
  /// `apns-expiration` is not a time.
  case badExpirationDate = "BadExpirationDate"
  /// `apns-id` is not a UUID.
  case badMessageID = "BadMessageId"
  /// `apns-priority` is not 10, 5 or 1, or does not fit the push type.
  case badPriority = "BadPriority"
  /// `apns-topic` is not an application, or lacks the suffix of its push type.
  case badTopic = "BadTopic"
  /// The device belongs to another application.
  case deviceTokenNotForTopic = "DeviceTokenNotForTopic"
  /// A header of the contract occurs twice. Only `traceparent` may.
  case duplicateHeaders = "DuplicateHeaders"
  /// `apns-push-type` is unknown.
  case invalidPushType = "InvalidPushType"
  /// The request has neither a target nor a record key.
  case missingDeviceToken = "MissingDeviceToken"
  /// The request has no `apns-topic`.
  case missingTopic = "MissingTopic"
  /// The request has no payload.
  case payloadEmpty = "PayloadEmpty"
  /// The application is not served here.
  case topicDisallowed = "TopicDisallowed"
  /// The payload is larger than the limit.
  case payloadTooLarge = "PayloadTooLarge"
  /// The device's registration has expired.
  case expiredToken = "ExpiredToken"
  /// The device is not registered.
  case unregistered = "Unregistered"
  /// The request is beyond a rate limit of its application, or the cluster has the maximum number of pending requests.
  case tooManyRequests = "TooManyRequests"
  /// The request needs a feature that this version or this cluster does not have.
  case featureNotEnabled = "FeatureNotEnabled"
  /// A header that is not Apple's has a wrong value.
  case badRequestParams = "BadRequestParams"
  /// The payload is not a JSON object with a valid `aps` object.
  case badRequestPayload = "BadRequestPayload"
  /// A broadcast has no channel.
  case missingChannelID = "MissingChannelId"
  /// The name of the channel is not valid.
  case badChannelID = "BadChannelId"
  /// The channel does not exist.
  case channelNotRegistered = "ChannelNotRegistered"
  /// The cluster failed. The request may be published again.
  case internalServerError = "InternalServerError"
}

/// The rejection of a request: the reason, the field, and the rule that it breaks.
///
/// It may be kept and logged. From the record it contains at most the plain name of an unknown field.
public struct Rejection: Error, Sendable, CustomStringConvertible {
  /// The reason, as a word of APNs.
  public let reason: RejectionReason
  /// The header, or the member of the payload, such as `aps.badge`.
  public let field: StaticString
  /// The rule, as a sentence that tells the sender what to do.
  public let rule: String
  /// The byte offset of the fault in a JSON payload or header; else `nil`.
  public let offset: Int?

  /// Creates a rejection of one field.
  public init(_ reason: RejectionReason, field: StaticString, rule: String, offset: Int? = nil) {
    self.reason = reason
    self.field = field
    self.rule = rule
    self.offset = offset
  }

  /// Creates a rejection of a field that is not valid JSON. Nesting that is too deep has a rule of its own.
  init(_ reason: RejectionReason, field: StaticString, _ error: any Error, rule: String, tooDeep: String) {
    let error = error as? JSONError
    self.init(reason, field: field, rule: error?.reason == .tooDeep ? tooDeep : rule, offset: error?.offset)
  }

  /// Adds a sentence that names an unknown field: the sender may have misspelt it.
  public func naming(_ unknown: UnknownField?) -> Rejection {
    unknown.map { Rejection(reason, field: field, rule: "\(rule) \($0.sentence)", offset: offset) } ?? self
  }

  /// The reason, the field and the rule.
  public var description: String { "\(reason.rawValue): \(field): \(rule)" + (offset.map { " (byte \($0))" } ?? "") }
}
