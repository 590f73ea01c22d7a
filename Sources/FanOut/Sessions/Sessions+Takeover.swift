import Notifications
import Store
import Worker

/// A device has one session: a new one ends the former, wherever that is.
extension Sessions {
  /// Ends the device's former session, which this lane or another one holds.
  func takeOver(_ former: Presence, _ token: String) {
    metrics.takeovers.increment()
    if let session = self[former.generation] { return session.takenOver() }
    events.takeOver(former, token: token)
  }

  /// Closes a session whose device has another one, as Redis says.
  ///
  /// After a break of the connection the other session may be one that Redis should have forgotten. Then the device reconnects.
  func elsewhere(_ session: Session, _ open: OpenSession) {
    session.close(epoch == open.epoch ? .takenOver : .serviceUnavailable)
  }
}

extension Session {
  /// The device has a newer session.
  func takenOver() { close(.takenOver) }
}
