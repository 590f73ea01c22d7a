public import Notifications

/// An event of a device, for its owner.
public enum DeviceEvent: Sendable {
  /// The direction of a frame.
  public enum Direction: String, Sendable {
    /// From the cluster.
    case `in`
    /// To the cluster.
    case out
  }

  /// A frame's text, if the configuration asks for it. A hello appears without its credential.
  case frame(Direction, String)
  /// The cluster has sent a welcome, at this address.
  case connected(WelcomeFrame, url: String)
  /// A connection has ended, with its code, the reason, and the milliseconds until the next attempt; nil if it does not reconnect.
  case closed(code: UInt16, reason: String, reconnectAfter: Int?)
  /// No connection could be made. With the reason, and the milliseconds until the next attempt; nil if another attempt is useless.
  case unreachable(String, reconnectAfter: Int?)
  /// A notification was shown.
  case shown(DeliveredNotification)
  /// A notification has replaced the one with its identifier.
  case updated(DeliveredNotification)
  /// A notification was taken and not shown: it only wakes the application.
  case silent(DeliveredNotification)
  /// The phone is locked, and its watch has shown a notification of it. It is in the list here, too.
  case forwarded(DeliveredNotification)
  /// A notification waits for its time or place.
  case held(DeliveredNotification)
  /// A notification or a removal was dropped.
  case dropped(delivery: UInt64?, id: String?, identifiers: [Name], DropReason)
  /// The cluster, the watch or the person's sign-out removed identifiers, and these were in the list.
  case removed(identifiers: [Name], [DeliveredNotification])
  /// An action of the person on this notification has brought the program to the foreground.
  case activated(Name)
  /// The program has not returned in time from a call for this notification, or too many calls run already.
  case unhandled(DeliveredNotification)
  /// The expanded notification is to be drawn anew.
  case panel(Panel)
  /// The expanded notification is not drawn any more.
  case panelClosed(Panel)
  /// The program's service extension has not finished this notification, for this reason. What there is of it is shown.
  case extensionFailed(notification: Name, String)
  /// A notification is shown without this attachment.
  case attachmentMissing(notification: Name, attachment: Name, AttachmentFailure)
  /// A response or a request was accepted.
  case accepted(FrameSubject)
  /// A response or a request was refused, and is not sent again.
  case refused(RefusedFrame)
  /// A new link to an attachment.
  case linked(LinkedFrame)
  /// Something cannot be delivered any more.
  case gap(GapFrame)
  /// The connection will end soon.
  case goaway(GoawayFrame)
  /// A frame of the cluster breaks the protocol, and is ignored.
  case badFrame(DeviceFrameError)
  /// The cluster has confirmed that the device signed out; it does not reconnect.
  case unregistered
  /// The device has stopped, because it cannot save its state any more.
  case failed(DeviceError)

  /// The notification that is to be drawn; nil for another event.
  var drawn: DeliveredNotification? {
    switch self {
    case .shown(let notification), .updated(let notification): notification
    default: nil
    }
  }
}
