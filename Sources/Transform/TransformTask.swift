/// Work of the lane's actor that waits for Redis or Kafka, and so takes several turns of the loop.
enum TransformTask: Sendable {
  /// Compare the markers.
  case compare
  /// Wait until Redis has all registrations.
  case restoreRegistry
  /// Count the requests of the last windows below the markers.
  case restoreWindows
  /// Wait until Redis has all schedules.
  case restoreSchedules
  /// Leave the group and join it again, since a partition has another owner.
  case rejoin
  /// Ask Redis for its memory and settings.
  case inspectRedis
  /// Check that the lane has read all stops of applications.
  case askForApplications
  /// Ask the brokers where logs begin and end.
  case askForLogs
  /// Ask the brokers how many partitions the topics have.
  case askForPartitions
  /// Ask the brokers which member owns which partition.
  case askForMembers
  /// The lane gets the permit to try a group of records that may end the process.
  case takePermit
}
