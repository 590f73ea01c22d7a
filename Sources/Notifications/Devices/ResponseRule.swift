/// Why the cluster refuses what a device has sent. The device does not repeat it.
///
/// The raw value is the `reason` of the frame `refused`.
public enum RefusalReason: String, Sendable, CaseIterable {
  /// A member is missing or wrong. `field` names it.
  case badFrame = "BadFrame"
  /// The receipt is not of this cluster, or is of another notification.
  case badReceipt = "BadReceipt"
  /// The receipt belongs to another device or another user.
  case notForThisDevice = "NotForThisDevice"
  /// The category was neither registered nor published at the time of delivery.
  case unknownCategory = "UnknownCategory"
  /// The category had no such action at the time of delivery.
  case unknownAction = "UnknownAction"
  /// The action takes no text.
  case unexpectedUserText = "UnexpectedUserText"
  /// The action takes text, and the response has none.
  case missingUserText = "MissingUserText"
  /// The text is longer than the limit.
  case userTextTooLong = "UserTextTooLong"
  /// The cluster serves no media.
  case unknownMedia = "UnknownMedia"
}

/// The verdict on a response whose receipt was checked.
public enum ResponseVerdict: Sendable, Equatable {
  /// The cluster emits an event: `response` or `dismissed`.
  case event(Outcome)
  /// The cluster accepts it without an event: the category does not ask for dismissals.
  case silent
  /// The cluster refuses it.
  case refused(RefusalReason, field: String)
}

extension Registration {
  /// The longest text of a response, in bytes.
  public static var userTextBytes: Int { 4_096 }
}

extension DeliveredCategory {
  /// Judges a response by the category at the time of delivery.
  ///
  /// - Parameters:
  ///   - action: Apple's default or dismiss identifier, or an action's own.
  ///   - userText: the text that the person typed, for an action that takes text.
  ///   - isDynamic: whether a content extension declared the action, as the device says. The category need not have such an action.
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
