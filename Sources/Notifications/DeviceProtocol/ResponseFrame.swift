public import JSON

/// The frame `response`: what the person did with a notification. The device sends it until it is accepted or refused.
public struct ResponseFrame: Sendable, Equatable {
  /// The device's own unique id for it.
  public var response: String
  /// The receipt that the notification came with.
  public var receipt: String
  /// The notification's identifier.
  public var identifier: Name
  /// Apple's default or dismiss identifier, or an action's own.
  public var action: Name
  /// The text that was typed.
  public var userText: String?
  /// When it was done, by the cluster's clock as the device knows it, in milliseconds since 1970.
  public var at: Int64?
  /// Whether a content extension declared the action when the notification was shown, so that its category need not have it.
  public var isDynamic: Bool

  /// A response.
  public init(
    response: String, receipt: String, identifier: Name, action: Name, userText: String? = nil, at: Int64? = nil, isDynamic: Bool = false
  ) {
    (self.response, self.receipt, self.identifier) = (response, receipt, identifier)
    (self.action, self.userText, self.at, self.isDynamic) = (action, userText, at, isDynamic)
  }

  init(_ reader: ObjectReader) throws(FieldError) {
    response = try reader.requiredText("response", longest: FrameLimits.idBytes)
    receipt = try reader.requiredText("receipt", longest: FrameLimits.receiptBytes)
    identifier = try reader.requiredName("identifier", longest: RequestLimits.identifierBytes)
    action = try reader.requiredName("action", longest: NotificationCategory.identifierBytes)
    // A longer text is judged with the action, so that the refusal says `UserTextTooLong`.
    if let text = reader["userText"]?.stringValue {
      userText = text
    } else {
      userText = try reader.text("userText", longest: Registration.userTextBytes, isFree: true)
    }
    isDynamic =
      try reader["dynamic"].map { value throws(FieldError) in
        guard let isDynamic = value.boolValue else { throw reader.error("dynamic", "This is true or false.") }
        return isDynamic
      } ?? false
    at = try reader["at"].map { value throws(FieldError) in
      guard let time = value.stringValue.flatMap({ Timestamp.parse($0) }) ?? value.integerValue, time >= 0 else {
        throw reader.error("at", "A time is milliseconds since 1970, or text by RFC 3339.")
      }
      return time
    }
  }

  /// Appends the frame.
  public func write(to json: inout JSONWriter) {
    json.openObject()
    json.member("type", DeviceFrameType.response.rawValue)
    json.member("response", response)
    json.member("receipt", receipt)
    json.member("identifier", identifier)
    json.member("action", action)
    if let userText { json.member("userText", userText) }
    if let at { json.member("at", at) }
    if isDynamic { json.member("dynamic", true) }
    json.closeObject()
  }
}
