import Notifications
import Store
import Worker

/// A device has one session: a new one ends the former, wherever that is.
extension FanOutCore {
  /// Ends the device's former session: here, or by way of its lane's partition.
  func takeOver(_ former: Presence, _ token: String) {
    metrics.takeovers.increment()
    if let session = sessions[former.generation] { return session.close(.takenOver) }
    eventProducer?.takeOver(former, token: token)
  }

  /// Another lane has a newer session of the device.
  func takenOver(_ session: Session) { session.close(.takenOver) }

  /// Redis knows another session of the device.
  ///
  /// What a Redis that has lost something says of another session may be long over: then the device asks again.
  func elsewhere(_ session: Session, _ open: OpenSession) {
    session.close(shards.epoch == open.epoch ? .takenOver : .serviceUnavailable)
  }
}
