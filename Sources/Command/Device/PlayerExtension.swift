import DeviceClient
import Notifications

/// Draws notifications of the category `player`, so that each command at a panel of `carillon device` can be tried.
final class PlayerExtension: ContentExtension {
  static let category = NotificationCategory(
    identifier: "player", actions: [NotificationAction(identifier: "like", title: "Like")])

  static var declaration: ContentExtensionDeclaration {
    var declaration = ContentExtensionDeclaration(categories: [category.identifier]) { PlayerExtension() }
    declaration.allowsInteraction = true
    return declaration
  }

  func didReceive(_ notification: DeliveredNotification, in context: ContentExtensionContext) {
    context.mediaPlayPauseButtonType = .default
    context.controls = [
      PanelControl(identifier: "next", title: "Next"),
      PanelControl(identifier: "note", title: "Note", kind: .textField(placeholder: "What do you hear?", buttonTitle: "Write")),
    ]
    context.lines = ["It pauses."]
  }

  func didTap(_ control: Name, text: String?, in context: ContentExtensionContext) {
    context.lines.append(PanelLine(text.map { "Note: \($0)" } ?? "The next one."))
  }

  func mediaPlay(in context: ContentExtensionContext) {
    context.mediaPlayingStarted()
    context.lines.append(PanelLine("It plays.", .green))
  }

  func mediaPause(in context: ContentExtensionContext) {
    context.mediaPlayingPaused()
    context.lines.append("It pauses.")
  }
}
