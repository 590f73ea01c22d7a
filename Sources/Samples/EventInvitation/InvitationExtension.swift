import DeviceClient

/// Draws an invitation with its photo, date and place, and says what the answer was before it passes that on.
final class InvitationExtension: ContentExtension {
  static var declaration: ContentExtensionDeclaration {
    var declaration = ContentExtensionDeclaration(categories: ["event-invite"]) { InvitationExtension() }
    declaration.hidesDefaultContent = true
    declaration.overridesTitle = true
    declaration.initialContentSizeRatio = 0.75
    return declaration
  }

  func didReceive(_ notification: DeliveredNotification, in context: ContentExtensionContext) {
    let content = notification.content
    context.title = content.title
    context.pictures = notification.attachments.map(\.attachment.identifier)
    context.lines = [
      PanelLine(content.body), "When: \(content[userInfo: "date"]?.stringValue ?? "?")",
      "Where: \(content[userInfo: "place"]?.stringValue ?? "?")",
    ]
  }

  func didReceive(
    _ response: NotificationResponse, in context: ContentExtensionContext
  ) async -> ContentExtensionResponseOption {
    switch response.actionIdentifier {
    case "accept": context.lines.append(PanelLine("Going!", .green))
    case "decline": context.lines.append(PanelLine("Not going.", .red))
    case "maybe": context.lines.append(PanelLine("Maybe.", .yellow))
    case "comment": context.lines.append("You: \(response.userText ?? "")")
    default: return .dismissAndForwardAction
    }
    // A moment to read it.
    try? await Task.sleep(for: .seconds(1))
    return .dismissAndForwardAction
  }
}
