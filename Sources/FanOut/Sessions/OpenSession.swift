import Notifications
import Store

/// What a session has while notifications flow.
final class OpenSession {
  let token: String
  let tokenHash: UInt64
  var registration: Registration
  /// Where the registration lies in `devices`: what later ones must come after.
  var owner: Owner
  var flow: SessionFlow
  /// Where the last record of `devices` lies that this session has published or found.
  var registeredAt: Int64
  /// When its credential expires, in seconds since 1970: it ends then.
  let expiration: Int64
  /// How often the connection to Redis had broken when the session began.
  let epoch: UInt64
  /// Which revisions were evicted, until the device has acknowledged what was sent behind the frame that tells it.
  var gap: MailboxGap?
  /// Frames that were refused.
  var errors = 0
  static let mostErrors = 100
  /// Changes of the registration that are under way.
  var changes = 0
  static let mostChanges = 8
  /// It was told to go: it is sent nothing more.
  var isLeaving = false

  init(
    token: String, registration: Registration, owner: Owner, registeredAt: Int64, expiration: Int64, epoch: UInt64, flow: SessionFlow
  ) {
    self.registeredAt = registeredAt
    self.expiration = expiration
    self.epoch = epoch
    self.token = token
    tokenHash = StableHash.hash(token)
    self.registration = registration
    self.owner = owner
    self.flow = flow
  }
}
