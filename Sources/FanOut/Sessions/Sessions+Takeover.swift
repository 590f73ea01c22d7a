import Notifications
import Store

/// A device has one session: a new one ends the former, wherever that is.
extension Sessions {
  /// Ends the device's former session, which this lane or another one holds.
  func takeOver(_ former: Presence, _ token: String) {
    metrics.count(.takeover)
    if let session = self[former.generation] { return session.takenOver() }
    events.takeOver(former, token: token)
  }

  /// Closes a session in whose place Redis has another session of the device.
  ///
  /// The other session may be an older one: a Redis that has lost the presences gets that of whichever session resyncs first. So the device
  /// reconnects, and only a takeover sends it away.
  func foundElsewhere(_ session: Session) { session.close(.serviceUnavailable) }
}

extension Session {
  /// The device has a newer session.
  func takenOver() { close(.takenOver) }
}
