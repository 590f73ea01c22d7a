import Kafka
import Notifications
import Store
import Worker

/// How far a rebuild has read, and which of the records are under way.
final class RebuildProgress {
  /// What the rebuild says of itself.
  var report = RebuildReport()
  /// The partitions that the present phase reads, by their indexes.
  private(set) var names: [Int: TopicPartition] = [:]
  /// The incarnation of each partition's topic, from the group's notes, otherwise from the journal.
  var incarnations: [TopicPartition: UInt32] = [:]
  /// Records that crashed workers, and would crash the rebuild.
  var poison: Set<SourceCoordinates> = []
  private var lastRecords: [TopicPartition: (offset: Int64, timestamp: Int64)] = [:]
  private(set) var step = TimeStep(milliseconds: .max)
  private var tracker = PartitionTracker(limit: 1 << 24, spanLimit: 1 << 24)

  /// How far one partition may be ahead of another. A mailbox may overflow by about that.
  private static let stepMilliseconds: Int64 = 10_000
  /// Maximum number of records in flight.
  static let inFlightMaximum = 20_000

  /// Begins a phase, of which nothing is read yet.
  func begin(_ phase: RebuildReport.Phase, _ ranges: [(TopicPartition, Range<Int64>)]) {
    report.phase = phase
    (report.read, report.records) = (0, 0)
    report.total = ranges.reduce(0) { $0 + Int64($1.1.count) }
    // Only topics that fill and empty mailboxes are read in step, since that makes partitions wait.
    step = TimeStep(milliseconds: phase == .requests ? Self.stepMilliseconds : .max)
    tracker = PartitionTracker(limit: 1 << 24, spanLimit: 1 << 24)
    names = [:]
  }

  /// The phase's partitions have their indexes. Those with a range come first.
  func assign(_ partitions: [AssignedPartition], _ ranges: [(TopicPartition, Range<Int64>)]) {
    for partition in partitions { names[partition.index] = partition.topicPartition }
    for (partition, (_, range)) in zip(partitions, ranges) { step.add(partition.index, range) }
  }

  // MARK: What is read

  /// Takes a record. Returns false if it lies above its partition's range.
  func take(_ record: RecordView) -> Bool {
    guard step.take(record.partitionIndex, offset: record.offset, timestamp: record.timestamp) else { return false }
    report.records += 1
    report.read = step.read
    return true
  }

  /// Notes the timestamp of a partition's next record, which is not taken yet.
  func reached(_ index: Int, _ timestamp: Int64) { step.reached(index, timestamp) }

  /// The partition has no more records below this offset.
  func ended(_ index: Int, at offset: Int64) {
    step.ended(index, at: offset)
    report.read = step.read
  }

  /// Skips an unreadable stretch. A marker after it has no timestamp, so that no worker begins to read inside the stretch.
  func passOver(_ index: Int, through last: Int64) {
    if let end = step.end(of: index), last < end, let name = names[index] { lastRecords[name] = (last, -1) }
    ended(index, at: last + 1)
  }

  /// Notes a record of a partition that has a marker.
  func note(_ record: RecordView) {
    guard let name = names[record.partitionIndex] else { return }
    lastRecords[name] = (record.offset, record.timestamp)
  }

  /// The timestamp of a partition's last record, which is then forgotten.
  func takeLastTimestamp(of name: TopicPartition) -> Int64? { lastRecords.removeValue(forKey: name)?.timestamp }

  // MARK: What is under way

  func assigned(_ partition: AssignedPartition) { tracker.assign(partition.index, generation: partition.generation) }

  /// How many records are under way.
  var inFlight: Int { tracker.inFlight }

  /// Gives a record its ticket; nil if the record is not processed.
  func begin(_ record: RecordView, at index: Int, isRegistration: Bool) -> BegunRecord? {
    guard let name = names[record.partitionIndex], poison.isEmpty || !poison.contains(SourceCoordinates(record)),
      case .begun(let ticket) = tracker.begin(record.partitionIndex, generation: record.generation, offset: record.offset)
    else { return nil }
    return BegunRecord(index: index, ticket: ticket, isRegistration: isRegistration, incarnation: incarnations[name] ?? 0)
  }

  func finish(_ ticket: RecordTicket) { tracker.finish(ticket) }

  // MARK: The markers

  /// The partitions of a topic with a record that was noted, with the offset behind it.
  func noted(of topic: String) -> [TopicPartition: Int64] { lastRecords.filter { $0.key.topic == topic }.mapValues { $0.offset + 1 } }

  /// The marker of a partition that is read up to an offset.
  func marker(of partition: TopicPartition, at offset: Int64) -> Marker {
    // The offset below may have no record, as after a transaction. Then the timestamp is the last record's.
    let timestamp = lastRecords[partition].map { $0.offset < offset ? $0.timestamp : -1 } ?? -1
    return Marker(offset: offset, timestamp: timestamp, incarnation: incarnations[partition] ?? 0)
  }
}
