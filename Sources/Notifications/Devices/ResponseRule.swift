/// Why the cluster does not take what a device has sent; the device does not send it again.
///
/// The raw value is the `reason` of the frame `refused`.
public enum RefusalReason: String, Sendable, CaseIterable {
  /// A member is missing or wrong; `field` says which.
  case badFrame = "BadFrame"
  /// The receipt is none of this cluster's, or of another notification.
  case badReceipt = "BadReceipt"
  /// The receipt belongs to another device or another user.
  case notForThisDevice = "NotForThisDevice"
  /// Nobody had registered or published the notification's category when it was delivered.
  case unknownCategory = "UnknownCategory"
  /// The category had no such action when the notification was delivered.
  case unknownAction = "UnknownAction"
  /// The action takes no text.
  case unexpectedUserText = "UnexpectedUserText"
  /// The action takes text, and there is none.
  case missingUserText = "MissingUserText"
  /// The text is longer than the limit.
  case userTextTooLong = "UserTextTooLong"
  /// The cluster serves no media.
  case unknownMedia = "UnknownMedia"
}

/// What the cluster makes of a response whose receipt it has checked.
public enum ResponseVerdict: Sendable, Equatable {
  /// It is told as an event: `response` or `dismissed`.
  case event(Outcome)
  /// It is accepted, and nothing is told: the category does not ask for dismissals.
  case silent
  /// It is refused.
  case refused(RefusalReason, field: String)
}

extension Registration {
  /// The longest text of a response, in bytes.
  public static var userTextBytes: Int { 4_096 }

  /// Judges a response by the categories that the device has registered now.
  ///
  /// - Parameters:
  ///   - category: the notification's category; empty or `nil` when it has none.
  ///   - action: Apple's default or dismiss identifier, or an action's own.
  ///   - userText: the text that was typed, for an action that takes text.
  public func judge(category: Name?, action: Name, userText: String?) -> ResponseVerdict {
    DeliveredCategory(categories.first { $0.identifier == category }).judge(action: action, userText: userText)
  }
}

extension DeliveredCategory {
  /// Judges a response to the notification that was delivered with it.
  ///
  /// - Parameters:
  ///   - action: Apple's default or dismiss identifier, or an action's own.
  ///   - userText: the text that was typed, for an action that takes text.
  ///   - isDynamic: a content extension declared the action when the notification was shown, as the device says: then the category need not
  ///     have it.
  public func judge(action: Name, userText: String?, isDynamic: Bool = false) -> ResponseVerdict {
    if let userText, userText.utf8.count > Registration.userTextBytes { return .refused(.userTextTooLong, field: "userText") }
    switch action {
    case NotificationAction.defaultIdentifier:
      return userText == nil ? .event(.response) : .refused(.unexpectedUserText, field: "userText")
    case NotificationAction.dismissIdentifier:
      guard userText == nil else { return .refused(.unexpectedUserText, field: "userText") }
      return tellsDismissal ? .event(.dismissed) : .silent
    default:
      if isDynamic { return .event(.response) }
      guard isKnown else { return .refused(.unknownCategory, field: "action") }
      guard let takesText = takesText(action) else { return .refused(.unknownAction, field: "action") }
      if !takesText, userText != nil { return .refused(.unexpectedUserText, field: "userText") }
      if takesText, userText == nil { return .refused(.missingUserText, field: "userText") }
      return .event(.response)
    }
  }
}
