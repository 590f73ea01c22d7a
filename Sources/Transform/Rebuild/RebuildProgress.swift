import Kafka
import Notifications
import Worker

/// How far a rebuild has read, and which records are in flight.
final class RebuildProgress {
  /// What the rebuild says of itself.
  var report = RebuildReport()
  var markers = RebuiltMarkers()
  /// Records that crashed workers, and would crash the rebuild.
  var poison: Set<SourceCoordinates> = []
  /// The partitions that the present phase reads, by their indexes.
  private(set) var names: [Int: TopicPartition] = [:]
  private(set) var step = TimeStep(milliseconds: .max) { didSet { report.read = step.offsetsRead } }
  private var ranges: [TopicPartition: Range<Int64>] = [:]
  private var tracker = PartitionTracker(limit: 1 << 24, spanLimit: 1 << 24)

  /// How far one partition may be ahead of another. A mailbox may overflow by about that.
  private static let stepMilliseconds: Int64 = 10_000
  /// Maximum number of records in flight.
  static let inFlightMaximum = 20_000

  /// Begins a phase. Nothing of it is read yet.
  func begin(_ phase: RebuildReport.Phase, _ ranges: [(TopicPartition, Range<Int64>)]) {
    report.phase = phase
    report.records = 0
    report.total = ranges.reduce(0) { $0 + Int64($1.1.count) }
    // Only topics that fill and empty mailboxes are read in step, since that makes partitions wait.
    step = TimeStep(milliseconds: phase == .requests ? Self.stepMilliseconds : .max)
    tracker = PartitionTracker(limit: 1 << 24, spanLimit: 1 << 24)
    names = [:]
    self.ranges = Dictionary(ranges) { first, _ in first }
  }

  /// A partition of the phase has its index, or is read again.
  func assigned(_ partition: AssignedPartition) {
    tracker.assign(partition.index, generation: partition.generation)
    guard names.updateValue(partition.topicPartition, forKey: partition.index) == nil else { return }
    if let range = ranges[partition.topicPartition] { step.add(partition.index, range) }
  }

  // MARK: What is read

  /// Takes a record. Returns false if it lies above its partition's range.
  func take(_ record: RecordView) -> Bool {
    guard step.take(record.partitionIndex, offset: record.offset, timestamp: record.timestamp) else { return false }
    report.records += 1
    return true
  }

  /// Notes the timestamp of a partition's next record, which is not taken yet.
  func reached(_ index: Int, _ timestamp: Int64) { step.reached(index, timestamp) }

  /// Everything below this offset is read.
  func passed(_ index: Int, below offset: Int64) { step.passed(index, below: offset) }

  /// Skips an unreadable stretch.
  func skip(_ index: Int, through last: Int64) {
    if let end = step.end(of: index), last < end, let name = names[index] { markers.note(name, last, -1) }
    passed(index, below: last + 1)
  }

  /// Notes a record of a topic that has markers.
  func note(_ record: RecordView) {
    if let name = names[record.partitionIndex] { markers.note(name, record.offset, record.timestamp) }
  }

  // MARK: Records in flight

  /// How many records are in flight.
  var inFlight: Int { tracker.inFlight }

  /// Gives a record its ticket; nil if the record is not processed.
  func begin(_ record: RecordView, at index: Int) -> BegunRecord? {
    guard let name = names[record.partitionIndex], poison.isEmpty || !poison.contains(SourceCoordinates(record)),
      case .begun(let ticket) = tracker.begin(record.partitionIndex, generation: record.generation, offset: record.offset)
    else { return nil }
    return BegunRecord(
      index: index, ticket: ticket, isRegistration: report.phase == .registrations, incarnation: markers.incarnations[name] ?? 0)
  }

  func finish(_ ticket: RecordTicket) { tracker.finish(ticket) }
}
