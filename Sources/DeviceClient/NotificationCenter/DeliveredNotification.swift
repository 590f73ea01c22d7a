public import FoundationEssentials
public import Notifications

/// A notification that the device has taken, from the cluster or from its own program (`UNNotification`).
public struct DeliveredNotification: Sendable, Equatable {
  /// The received frame; for a local one the frame that the cluster would have sent. Its delivery number is only valid in its session.
  public let frame: NotifyFrame
  /// The frame as the program's service extension has changed it; nil if it has changed nothing.
  private(set) var changed: NotifyFrame?
  /// The content after the device's service extensions.
  public private(set) var content: NotificationContent
  /// When it was taken or shown, in milliseconds since 1970: by the cluster's clock, for a local one by the device's.
  public private(set) var takenAt: Int64
  /// When it was taken or shown.
  public var date: Date { Date(milliseconds: takenAt) }
  /// How it is shown; empty if it is not, or not yet.
  public private(set) var presentation: PresentationOptions
  /// Whether the program on this device has added it. Responses to it stay on the device.
  public let isLocal: Bool

  init(_ frame: NotifyFrame, takenAt: Int64, isLocal: Bool, _ extensions: ServiceExtensions) {
    (self.frame, self.takenAt, self.isLocal, presentation) = (frame, takenAt, isLocal, [])
    content = isLocal ? NotificationContent(payload: frame.payload) : extensions.content(of: frame)
  }

  /// The request's identifier.
  public var identifier: Name { frame.identifier }
  /// The attachments, in the order in which they are shown.
  public var attachments: [LinkedAttachment] { (changed ?? frame).attachments }
  /// The apns-id; a local one has an id of its own.
  public var id: String { frame.id }
  /// The request. Its trigger is `push` if the cluster sent it to be shown at once.
  public var request: NotificationRequest {
    let trigger = isLocal && frame.trigger == nil ? nil : NotificationTrigger(json: frame.trigger)
    return NotificationRequest(identifier: identifier, content: content, trigger: trigger)
  }

  /// The same, shown in these ways.
  func shown(_ ways: PresentationOptions) -> DeliveredNotification { with { $0.presentation = ways } }

  /// The same, with what the program's service extension has made of its frame.
  func changed(to frame: NotifyFrame) -> DeliveredNotification {
    with { ($0.changed, $0.content) = (frame, NotificationContent(payload: frame.payload)) }
  }

  /// The same, taken at another time.
  func taken(at time: Int64) -> DeliveredNotification { with { $0.takenAt = time } }

  private func with(_ change: (inout DeliveredNotification) -> Void) -> DeliveredNotification {
    var copy = self
    change(&copy)
    return copy
  }
}

extension DeliveredNotification: CustomStringConvertible {
  /// Its identifier, its texts and the ways in which it is shown.
  public var description: String {
    "\(identifier) \([content.title, content.subtitle, content.body].filter { !$0.isEmpty }) \(presentation)"
  }
}
