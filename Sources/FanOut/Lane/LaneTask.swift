import Notifications

/// What takes more than a turn of the loop: it waits for Redis and Kafka, in a task of the lane's actor.
///
/// Sessions are named by their generation: when the task begins one may have ended.
enum LaneTask: Sendable {
  /// Whether Redis has what it should.
  case checkRedis
  /// It is to be known whether the stops of applications are all there are.
  case askForApplications
  /// A hello was admitted.
  case enter(UInt64)
  /// A session resyncs with its presence and its mailbox.
  case resync(UInt64)
  /// Settings or categories have changed.
  case change(UInt64, RegistrationChange)
  /// The device is to be forgotten; with the request's id.
  case unregister(UInt64, String?)
}
