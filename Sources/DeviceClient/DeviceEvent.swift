public import Notifications

/// What a device tells its owner.
public enum DeviceEvent: Sendable {
  /// Which way a frame went.
  public enum Direction: String, Sendable {
    /// From the cluster.
    case `in`
    /// To the cluster.
    case out
  }

  /// A frame's text, when the configuration asks for it. A hello is told without its credential.
  case frame(Direction, String)
  /// The cluster has welcomed it, at this address.
  case connected(WelcomeFrame, url: String)
  /// A connection is over: its code, why, and the milliseconds until the next attempt; nil when it does not reconnect by itself.
  case closed(code: UInt16, reason: String, reconnectAfter: Int?)
  /// No connection could be made: why, and the milliseconds until the next attempt; nil when trying again is useless.
  case unreachable(String, reconnectAfter: Int?)
  /// A notification has come before the person.
  case shown(DeliveredNotification)
  /// A notification has taken the place of the one with its identifier.
  case updated(DeliveredNotification)
  /// A notification was stored and not shown.
  case silent(DeliveredNotification)
  /// A notification waits until the device is somewhere.
  case held(DeliveredNotification)
  /// A notification or a removal was not taken.
  case dropped(delivery: UInt64?, id: String?, identifiers: [Name], DropReason)
  /// The cluster took identifiers away, and these were in the list.
  case removed(identifiers: [Name], [DeliveredNotification])
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
  /// A frame of the cluster is not of the protocol, and is passed over.
  case badFrame(DeviceFrameError)
  /// The cluster knows that the device signed out; it does not reconnect.
  case unregistered
  /// So many lines of the state file were damaged, and are forgotten.
  case stateDamaged(lines: Int)
  /// The device has stopped: it cannot remember any more.
  case failed(DeviceError)
}
