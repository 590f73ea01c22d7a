import Notifications

/// Work that waits for Redis or Kafka, in a task of the lane's actor.
///
/// A task names its session by the generation, since the session may have ended before the task begins.
enum LaneTask: Sendable {
  /// Check whether Redis has all its data.
  case checkRedis
  /// Find out whether all stops of applications are known.
  case askForApplications
  /// Process an admitted hello.
  case enter(UInt64)
  /// Resync a session with its presence and its mailbox.
  case resync(UInt64)
  /// Apply changed settings or categories.
  case change(UInt64, RegistrationChange)
  /// Unregister the device; with the request's id.
  case unregister(UInt64, String?)
}
