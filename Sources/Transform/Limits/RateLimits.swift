import Kafka
import Worker

/// Counts the requests that the lane begins by the rate limits of their applications.
///
/// A request is counted when it begins: once in each assignment, in the order of the log. Retries do not count again. Before a partition's
/// first record begins, `WindowRestoration` counts the records of its last window below the marker.
///
/// A replay is not counted, since it has no effect.
final class RateLimits {
  private struct Partition {
    let assigned: AssignedPartition
    var counter = RateCounter()
    /// Whether the records below the marker are counted.
    var isRestored: Bool
  }

  private let applications: any KnownApplications
  private let reader: RequestReader
  private let topic: String
  private var partitions: [Partition?] = []

  init(_ applications: any KnownApplications, _ settings: TransformSettings) {
    self.applications = applications
    reader = RequestReader(settings)
    topic = settings.topics.requests
  }

  /// Whether any application has a limit, or had one. Without limits nothing is counted.
  var isActive: Bool { applications.table.hasLimits }

  /// The time after which no application had a limit.
  var end: Int64 { applications.table.limitsEnd }

  /// Partitions are assigned. Returns the indexes of those that must wait until their last windows are counted.
  func assigned(_ assigned: [AssignedPartition]) -> Set<Int> {
    var waiting: Set<Int> = []
    for partition in assigned where partition.topicPartition.topic == topic {
      while partitions.count <= partition.index { partitions.append(nil) }
      partitions[partition.index] = Partition(assigned: partition, isRestored: !isActive)
      if isActive { waiting.insert(partition.index) }
    }
    return waiting
  }

  /// Partitions have left.
  func left(_ gone: [AssignedPartition]) {
    for partition in gone where isCurrent(partition) { partitions[partition.index] = nil }
  }

  private func isCurrent(_ partition: AssignedPartition) -> Bool {
    partition.index < partitions.count && partitions[partition.index]?.assigned.generation == partition.generation
  }

  /// The partitions whose last windows are not counted yet.
  var unrestored: [AssignedPartition] { partitions.compactMap { $0?.isRestored == false ? $0?.assigned : nil } }

  /// The records of a partition's last window below its marker are counted. Returns false if the assignment is over.
  func restored(_ partition: AssignedPartition, _ counter: RateCounter) -> Bool {
    guard isCurrent(partition) else { return false }
    partitions[partition.index] = Partition(assigned: partition, counter: counter, isRestored: true)
    return true
  }

  /// Counts a request that begins. Returns why it is beyond a limit; nil if it is not.
  func count(_ record: RecordView) -> RateExcess? {
    let index = record.partitionIndex
    guard index < partitions.count, partitions[index] != nil else { return nil }
    return reader.readEnvelope(record) { partitions[index]?.counter.count($0, at: record.timestamp, applications.table) }
  }

  /// Counts a request in a counter that is not in use yet.
  func count(_ record: RecordView, in counter: inout RateCounter) -> RateExcess? {
    reader.readEnvelope(record) { counter.count($0, at: record.timestamp, applications.table) }
  }
}
