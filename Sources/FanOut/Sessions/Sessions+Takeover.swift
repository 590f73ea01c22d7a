import Notifications
import Store
import Worker

/// A device has one session: a new one ends the former, wherever that is.
extension Sessions {
  /// Ends the device's former session: here, or by way of its lane's partition.
  func takeOver(_ former: Presence, _ token: String) {
    metrics.takeovers.increment()
    if let session = self[former.generation] { return session.takenOver() }
    events.takeOver(former, token: token)
  }

  /// Redis knows another session of the device.
  ///
  /// What a Redis that has lost something says of another session may be long over: then the device asks again.
  func elsewhere(_ session: Session, _ open: OpenSession) {
    session.close(epoch == open.epoch ? .takenOver : .serviceUnavailable)
  }
}

extension Session {
  /// The device has a newer session.
  func takenOver() { close(.takenOver) }
}
