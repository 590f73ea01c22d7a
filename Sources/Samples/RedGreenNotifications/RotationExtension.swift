import DeviceClient
import Notifications

/// Draws a square in the color of its category, and turns it by 20° with each tap.
///
/// Upright or upside down there is nothing to reset, so the action for it comes and goes.
final class RotationExtension: ContentExtension {
  static var declaration: ContentExtensionDeclaration {
    ContentExtensionDeclaration(categories: ["red", "green"]) { RotationExtension() }
  }

  static let rotate = NotificationAction(identifier: "rotate", title: "Rotate 20°")
  private static let reset = NotificationAction(identifier: "reset", title: "Reset rotation")
  private var color: Name = ""
  private var taps = 0

  func didReceive(_ notification: DeliveredNotification, in context: ContentExtensionContext) {
    color = notification.content.categoryIdentifier ?? ""
    draw(in: context)
  }

  func didReceive(
    _ response: NotificationResponse, in context: ContentExtensionContext
  ) async -> ContentExtensionResponseOption {
    taps = response.actionIdentifier == Self.rotate.identifier ? taps + 1 : 0
    switch taps % 9 {
    case 1: context.notificationActions.append(Self.reset)
    case 0: context.notificationActions.removeAll { $0.identifier == Self.reset.identifier }
    default: break
    }
    draw(in: context)
    return .doNotDismiss
  }

  private func draw(in context: ContentExtensionContext) {
    context.lines = [PanelLine("■ \(color), turned by \(taps * 20 % 360)°", color == "red" ? .red : .green)]
  }
}
