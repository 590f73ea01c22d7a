import DeviceClient
import JSON
import Notifications

/// Draws an invitation with its photo, date and place, says what the answer was, and takes comments by itself.
final class InvitationExtension: ContentExtension {
  static var declaration: ContentExtensionDeclaration {
    var declaration = ContentExtensionDeclaration(categories: ["event-invite"]) { InvitationExtension() }
    declaration.hidesDefaultContent = true
    declaration.overridesTitle = true
    declaration.initialContentSizeRatio = 0.75
    declaration.allowsInteraction = true
    return declaration
  }

  func didReceive(_ notification: DeliveredNotification, in context: ContentExtensionContext) {
    let content = notification.content
    context.title = content.title
    context.pictures = notification.attachments.map(\.attachment.identifier)
    context.lines = [
      content.body, "When: \(content[userInfo: "date"]?.stringValue ?? "?")", "Where: \(content[userInfo: "place"]?.stringValue ?? "?")",
    ]
  }

  func didReceive(
    _ response: NotificationResponse, in context: ContentExtensionContext
  ) async -> ContentExtensionResponseOption {
    switch response.actionIdentifier {
    case "accept": context.lines.append("Going!")
    case "decline": context.lines.append("Not Going.")
    case "comment":
      // The panel stays, and the person types into it.
      context.controls = [
        PanelControl(
          identifier: "comment", title: "Comment", kind: .textField(placeholder: "What do you want to say?", buttonTitle: "Send"))
      ]
      context.firstResponder = "comment"
      return .doNotDismiss
    default: return .dismissAndForwardAction
    }
    // A moment to read it.
    try? await Task.sleep(for: .seconds(1))
    return .dismissAndForwardAction
  }

  func didTap(_ control: Name, text: String?, in context: ContentExtensionContext) {
    guard control == "comment", let text else { return }
    context.lines.append("You: \(text)")
    context.controls = []
  }
}
