public import Notifications

/// A notification that the device has taken.
public struct DeliveredNotification: Sendable, Equatable {
  /// The received frame. Its delivery number is only valid in its session.
  public let frame: NotifyFrame
  /// The content after the device's service extensions.
  public let content: NotificationContent
  /// When it was taken, by the cluster's clock, in milliseconds since 1970.
  public let takenAt: Int64
  /// How it was shown; empty if the person allows nothing.
  public let presentation: Presentation

  init(_ frame: NotifyFrame, takenAt: Int64, authorization: Authorization, _ extensions: ContentExtensions) {
    let content = extensions.content(of: frame)
    (self.frame, self.content, self.takenAt) = (frame, content, takenAt)
    presentation = Presentation(of: content, under: authorization)
  }

  /// One that was shown before, as the database has it.
  init(_ stored: StoredState.Listed, _ extensions: ContentExtensions) {
    (frame, takenAt, presentation) = (stored.frame, stored.takenAt, stored.presentation)
    content = extensions.content(of: stored.frame)
  }

  /// The request's identifier.
  public var identifier: Name { frame.identifier }
  /// The attachments, in the order in which they are shown.
  public var attachments: [LinkedAttachment] { frame.attachments }
  /// The apns-id.
  public var id: String { frame.id }
}
