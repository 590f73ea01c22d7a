public import Notifications

/// Draws an expanded notification of its categories, and takes what the person does in it (`UNNotificationContentExtension`).
///
/// Each panel gets an extension of its own. All calls come on the device's loop and must not block it; only the answer to a response may
/// take its time.
public protocol ContentExtension: AnyObject {
  /// Draws the expanded notification, and then each newer one of its thread while the panel is open.
  func didReceive(_ notification: DeliveredNotification, in context: ContentExtensionContext)

  /// Handles an action of the person, which is stored already, and answers what becomes of the panel and of the response.
  ///
  /// After the declaration's `answerMilliseconds`, and when the panel closes before, its task is canceled and the response is forwarded, so
  /// that none is lost. It is marked as unanswered for the application.
  func didReceive(_ response: NotificationResponse, in context: ContentExtensionContext) async -> ContentExtensionResponseOption

  /// Handles the tap on a control of its own, with the text that was typed if the control is a text field.
  func didTap(_ control: Name, text: String?, in context: ContentExtensionContext)

  /// Begins to play; the person has tapped the media button.
  func mediaPlay(in context: ContentExtensionContext)

  /// Pauses; the person has tapped the media button.
  func mediaPause(in context: ContentExtensionContext)
}

extension ContentExtension {
  /// Forwards every response.
  public func didReceive(
    _ response: NotificationResponse, in context: ContentExtensionContext
  ) async -> ContentExtensionResponseOption { .dismissAndForwardAction }

  /// Does nothing.
  public func didTap(_ control: Name, text: String?, in context: ContentExtensionContext) {}

  /// Does nothing.
  public func mediaPlay(in context: ContentExtensionContext) {}

  /// Does nothing.
  public func mediaPause(in context: ContentExtensionContext) {}
}

/// What becomes of a panel and of a response (`UNNotificationContentExtensionResponseOption`).
public enum ContentExtensionResponseOption: Sendable, Equatable, CaseIterable {
  /// The panel stays open, and the extension has handled the response.
  case doNotDismiss
  /// The panel closes and its notification leaves the list; the extension has handled the response.
  case dismiss
  /// The panel closes, its notification leaves the list, and the application and the cluster get the response.
  case dismissAndForwardAction
}

/// A content extension as its `Info.plist` would declare it, and how one is made.
public struct ContentExtensionDeclaration: Sendable {
  /// The categories whose notifications it draws.
  public var categories: [Name]
  /// Whether its own content replaces title, subtitle, body and attachments.
  public var hidesDefaultContent = false
  /// Whether its title replaces the application's name.
  public var overridesTitle = false
  /// The panel's height divided by its width before the extension has drawn; without one the panel opens full.
  public var initialContentSizeRatio: Double?
  /// Whether it may have controls of its own.
  public var allowsInteraction = false
  /// Whether it takes the default action as well.
  public var takesDefaultAction = false
  /// Whether it takes the dismissal as well, if the category asks for dismissals.
  public var takesDismissAction = false
  /// How long it may take to answer a response.
  public var answerMilliseconds = 30_000
  let make: @Sendable () -> any ContentExtension

  /// Declares an extension.
  ///
  /// - Parameter make: makes one for each panel, on the device's loop.
  public init(categories: [Name], _ make: @escaping @Sendable () -> any ContentExtension) {
    (self.categories, self.make) = (categories, make)
  }
}
