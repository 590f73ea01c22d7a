public import Notifications

/// The texts of a notification that may be drawn, by the person's setting for previews.
public struct NotificationPreview: Sendable, Equatable {
  /// The text that stands for hidden content, where the category has none.
  public static var hiddenBody: String { "Notification" }

  /// The title; empty if there is none, or if it is hidden.
  public let title: String
  /// The subtitle; empty if there is none, or if it is hidden.
  public let subtitle: String
  /// The text, or what stands for it while the content is hidden.
  public let body: String
  /// Whether the content is hidden. Attachments are not drawn then.
  public let isHidden: Bool

  /// The preview of a content in a state.
  ///
  /// - Parameters:
  ///   - previews: the person's setting; nil shows the content.
  ///   - category: the notification's, if it is known.
  public init(
    of content: NotificationContent, _ previews: Authorization.Previews?, in state: ApplicationState, category: NotificationCategory?
  ) {
    let isHidden =
      switch previews {
      case .always, nil: false
      case .whenAuthenticated: state == .locked
      case .never: true
      }
    func text(_ text: String, if option: NotificationCategory.Option) -> String {
      !isHidden || category?.options.contains(option) == true ? text : ""
    }
    self.isHidden = isHidden
    title = text(content.title, if: .hiddenPreviewsShowTitle)
    subtitle = text(content.subtitle, if: .hiddenPreviewsShowSubtitle)
    body = isHidden ? category?.hiddenPreviewsBodyPlaceholder ?? Self.hiddenBody : content.body
  }
}
