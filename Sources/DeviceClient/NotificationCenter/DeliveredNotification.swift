public import Notifications

/// A notification that the device has taken.
public struct DeliveredNotification: Sendable, Equatable {
  /// As it came; its delivery number means nothing after its session.
  public let frame: NotifyFrame
  /// What it says, as the device's service extensions have left it.
  public let content: NotificationContent
  /// When it was taken, by the cluster's clock, in milliseconds since 1970.
  public let takenAt: Int64
  /// How it came before the person; empty when the person wants none.
  public let presentation: Presentation

  init(_ frame: NotifyFrame, takenAt: Int64, authorization: Authorization, _ extensions: ContentExtensions) {
    let content = extensions.content(of: frame)
    (self.frame, self.content, self.takenAt) = (frame, content, takenAt)
    presentation = Presentation(of: content, under: authorization)
  }

  /// The request's identifier.
  public var identifier: Name { frame.identifier }
  /// What it comes with, in the order in which it is shown.
  public var attachments: [LinkedAttachment] { frame.attachments }
  /// The apns-id.
  public var id: String { frame.id }
}
