import Kafka

/// What takes more than a turn of the loop: it waits for Redis and Kafka, in a task of the lane's actor.
enum TransformTask: Sendable {
  /// The markers are to be compared.
  case compare
  /// The registry may be behind.
  case restoreRegistry
  /// The schedules may be behind.
  case restoreSchedules
  /// A partition has another owner.
  case rejoin
  /// Redis is asked for its memory and settings.
  case inspectRedis
  /// It is to be known whether the stops of applications are all there are.
  case askForApplications
  /// Brokers are asked where logs begin and end.
  case askForLogs
  /// The brokers are asked how many partitions the topics have.
  case askForPartitions
  /// The brokers are asked who has which partition.
  case askForMembers
  /// The lane gets the permit to try a group of records that may end the process.
  case takePermit
}

/// Has tasks run on the lane's actor, one for each call.
protocol TransformTaskRunner: AnyObject {
  /// Runs what takes more than a turn of the loop.
  func run(_ task: TransformTask)
}

/// What the parts of a lane ask of its actor.
protocol TransformCoreOwner: TransformTaskRunner, Sendable {
  /// A client of Kafka can do nothing any more; only a new lane can.
  func failed(_ error: KafkaError)
}
