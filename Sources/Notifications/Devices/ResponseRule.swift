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
  /// The device has not registered the notification's category.
  case unknownCategory = "UnknownCategory"
  /// The category has no such action.
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
  case event(EventType)
  /// It is accepted, and nothing is told: the category does not ask for dismissals.
  case silent
  /// It is refused.
  case refused(RefusalReason, field: String)
}

extension Registration {
  /// The longest text of a response, in bytes.
  public static var userTextBytes: Int { 4_096 }

  /// Judges a response by the categories that the device has registered.
  ///
  /// - Parameters:
  ///   - category: the notification's category; empty or `nil` when it has none.
  ///   - action: Apple's default or dismiss identifier, or an action's own.
  ///   - userText: the text that was typed, for an action that takes text.
  public func judge(category: Name?, action: Name, userText: String?) -> ResponseVerdict {
    if let userText, userText.utf8.count > Self.userTextBytes { return .refused(.userTextTooLong, field: "userText") }
    let registered = categories.first { $0.identifier == category }
    switch action {
    case NotificationAction.defaultIdentifier:
      return userText == nil ? .event(.response) : .refused(.unexpectedUserText, field: "userText")
    case NotificationAction.dismissIdentifier:
      guard userText == nil else { return .refused(.unexpectedUserText, field: "userText") }
      return registered?.options.contains(.customDismissAction) == true ? .event(.dismissed) : .silent
    default:
      guard let registered else { return .refused(.unknownCategory, field: "action") }
      guard let known = registered.actions.first(where: { $0.identifier == action }) else {
        return .refused(.unknownAction, field: "action")
      }
      if known.textInput == nil, userText != nil { return .refused(.unexpectedUserText, field: "userText") }
      if known.textInput != nil, userText == nil { return .refused(.missingUserText, field: "userText") }
      return .event(.response)
    }
  }
}
