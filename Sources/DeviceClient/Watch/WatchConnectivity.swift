/// The program's channel between a phone and its watch (`WCSession`).
///
/// The program carries the bytes, over a radio for example, and gives what the other device has sent to ``Device/didReceiveMessageData(_:)``.
/// The channel may lose, repeat, delay and reorder messages.
public struct WatchConnectivity: Sendable {
  /// Which of the two this device is.
  public enum Side: Sendable {
    /// It has the connection to the cluster, and forwards notifications while it is locked.
    case phone
    /// It shows what its phone forwards, and its own local notifications.
    case watch
  }

  /// Which of the two this device is.
  public var side: Side
  /// Sends a message to the other one. It is called on the device's loop, must not block, and need not tell whether the message arrives.
  public var sendMessageData: @Sendable ([UInt8]) -> Void
  /// On the phone: how long the watch may claim a notification, and after that may show it, in milliseconds; at most an hour.
  public var leaseMilliseconds = 5_000

  /// Describes the channel.
  public init(_ side: Side, sendMessageData: @escaping @Sendable ([UInt8]) -> Void) {
    (self.side, self.sendMessageData) = (side, sendMessageData)
  }
}
