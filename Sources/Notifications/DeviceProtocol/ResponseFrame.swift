public import JSON

/// The frame `response`: what the person did with a notification.
///
/// The device repeats it until the cluster accepts or refuses it.
public struct ResponseFrame: Sendable, Equatable, JSONWritable {
  /// The device's own unique id for the response.
  public var response: String
  /// The receipt of the notification.
  public var receipt: String
  /// The notification's identifier.
  public var identifier: Name
  /// Apple's default or dismiss identifier, or an action's own.
  public var action: Name
  /// The text that the person typed.
  public var userText: String?
  /// The time, in milliseconds since 1970 by the cluster's clock as the device knows it.
  public var at: Int64?
  /// Whether a content extension declared the action when the notification was shown.
  ///
  /// The category need not have such an action.
  public var isDynamic: Bool
  /// Whether a content extension had the response and has not answered.
  public var isUnanswered: Bool

  /// Creates a response.
  public init(
    response: String, receipt: String, identifier: Name, action: Name, userText: String? = nil, at: Int64? = nil, isDynamic: Bool = false,
    isUnanswered: Bool = false
  ) {
    (self.response, self.receipt, self.identifier) = (response, receipt, identifier)
    (self.action, self.userText, self.at, self.isDynamic) = (action, userText, at, isDynamic)
    self.isUnanswered = isUnanswered
  }

  init(_ reader: ObjectReader) throws(FieldError) {
    response = try reader.requiredText("response", longest: FrameLimits.idBytes)
    receipt = try reader.requiredText("receipt", longest: FrameLimits.receiptBytes)
    identifier = try reader.requiredName("identifier", longest: RequestLimits.identifierBytes)
    action = try reader.requiredName("action", longest: NotificationCategory.identifierBytes)
    // A longer text is judged together with the action, so that the refusal is `UserTextTooLong`.
    if let text = reader["userText"]?.stringValue {
      userText = text
    } else {
      userText = try reader.text("userText", longest: Registration.userTextBytes, isFree: true)
    }
    isDynamic = try reader.flag("dynamic") ?? false
    isUnanswered = try reader.flag("unanswered") ?? false
    at = try reader["at"].map { value throws(FieldError) in
      guard let time = value.stringValue.flatMap({ Timestamp.parse($0) }) ?? value.integerValue, time >= 0 else {
        throw reader.error("at", "A time is milliseconds since 1970, or text by RFC 3339.")
      }
      return time
    }
  }

  /// Appends the frame.
  public func write(to json: inout JSONWriter) {
    json.openFrame("response")
    json.member("response", response)
    json.member("receipt", receipt)
    json.member("identifier", identifier)
    json.member("action", action)
    if let userText { json.member("userText", userText) }
    if let at { json.member("at", at) }
    if isDynamic { json.member("dynamic", true) }
    if isUnanswered { json.member("unanswered", true) }
    json.closeObject()
  }
}
