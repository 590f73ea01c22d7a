public import EventLoop

/// Commits the offsets of finished records of a consumer.
///
/// At most one commit is in flight, and no offset goes backwards.
///
/// Its owner passes on the consumer's events (`assigned`, `revoked`), begins each record, and finishes it when all its outcomes are
/// durable. A failed commit is repeated at the next interval. If the group refuses a commit because the assignment is over, it is dropped,
/// and the partition's new owner reads the records again.
public final class OffsetCommitter {
  /// Partitions that are revoked as soon as no record is in flight and their last offsets are committed.
  private struct Leaving {
    var partitions: [AssignedPartition]
    var revocation: Revocation
    var deadline: Timer
    var left: () -> Void
    var isCommitting = false
    var isOverdue = false
  }

  private let loop: EventLoop
  private let consumer: Consumer
  private let onError: (KafkaError) -> Void
  /// Prepares offsets for their commit. It gets those that have advanced, and answers once with those that may be committed. It gets the
  /// others again at the next interval.
  public var prepare: ((_ offsets: [CommitOffset], _ prepared: @escaping ([CommitOffset]) -> Void) -> Void)?
  /// Gets at each interval, of each partition with records that were set aside, the offset below which all others are finished.
  public var onBeyondSetAside: (([CommitOffset]) -> Void)?
  private var timer: Timer?
  private var tracker: PartitionTracker
  private var leaving: [Leaving] = []
  private var isCommitting = false

  /// Makes a committer for one consumer.
  ///
  /// - Parameters:
  ///   - intervalMilliseconds: how often offsets are committed. A crash repeats the records that finished within it.
  ///   - limit: the most records in flight. The tracker limits how many finished ones wait after an unfinished one.
  ///   - onError: gets failed commits. No reaction is needed.
  public init(
    on loop: EventLoop, _ consumer: Consumer, intervalMilliseconds: Int = 1_000, limit: Int = 100_000,
    onError: @escaping (KafkaError) -> Void = { _ in }
  ) {
    self.loop = loop
    self.consumer = consumer
    self.onError = onError
    tracker = PartitionTracker(limit: limit)
    timer = Timer(on: loop, after: intervalMilliseconds, repeating: intervalMilliseconds) { [weak self] in self?.commit() }
  }

  /// Handles `consumerAssigned`.
  public func assigned(_ partitions: [AssignedPartition]) {
    for partition in partitions { tracker.assign(partition.index, generation: partition.generation) }
  }

  /// Handles `consumerRevoked`: waits for records in flight, commits, and consents.
  ///
  /// - Parameters:
  ///   - milliseconds: how long to wait for records in flight; shorter than the consumer's revocation timeout.
  ///   - left: called once before the consent, when no record is in flight or the time is over. For lost partitions it is called at once.
  public func revoked(
    _ partitions: [AssignedPartition], isLost: Bool, revocation: Revocation, withinMilliseconds milliseconds: Int,
    _ left: @escaping () -> Void = {}
  ) {
    guard !isLost else {
      revoke(partitions)
      left()
      return revocation.finish()
    }
    let deadline = Timer(on: loop) { [weak self] in self?.overdue(revocation) }
    deadline.start(after: milliseconds)
    leaving.append(Leaving(partitions: partitions, revocation: revocation, deadline: deadline, left: left))
    lookForLeaving()
  }

  /// Begins a record. The caller processes it if the answer says so.
  public func begin(_ record: RecordView) -> PartitionTracker.Beginning {
    tracker.begin(record.partitionIndex, generation: record.generation, offset: record.offset, timestamp: record.timestamp)
  }

  /// Begins an unreadable stretch, which counts as one record. All records before it must have begun.
  public func begin(_ stretch: UnreadableStretch) -> PartitionTracker.Beginning {
    // Without a timestamp, reading never begins inside of it.
    tracker.begin(stretch.partition.index, generation: stretch.partition.generation, offset: stretch.offsets.upperBound - 1)
  }

  /// Handles `consumerReachedEnd`. All records before the end must have begun; the offset is committed when they are finished.
  ///
  /// - Parameter timestamp: of the last record below the offset, if none was read in this assignment.
  public func reachedEnd(of partition: AssignedPartition, at offset: Int64, timestamp: Int64) {
    tracker.reachEnd(partition.index, generation: partition.generation, offset: offset, timestamp: timestamp)
  }

  /// Finishes records, in any order. A record whose assignment is over changes nothing.
  ///
  /// - Parameter beforeLeaving: called before a revocation is answered that has waited for these records.
  public func finish(_ tickets: [RecordTicket], beforeLeaving: () -> Void = {}) {
    for ticket in tickets { tracker.finish(ticket) }
    beforeLeaving()
    if !tickets.isEmpty, !leaving.isEmpty { lookForLeaving() }
  }

  /// Sets a record aside that this process may never finish. Its partition's offset waits for it nevertheless.
  public func setAside(_ ticket: RecordTicket) { tracker.setAside(ticket) }

  /// Whether the assignment of a record still holds. If not, the record is read again, here or by another owner.
  public func isCurrent(_ ticket: RecordTicket) -> Bool { tracker.isCurrent(ticket) }

  /// Records in flight.
  public var inFlight: Int { tracker.inFlight }
  /// Records in flight of one partition.
  public func inFlight(of index: Int) -> Int { tracker.inFlight(of: index) }

  /// The progress of one partition; nil if it is not assigned.
  public func progress(of index: Int) -> PartitionProgress? { tracker.progress(of: index) }

  /// Commits the offsets that have advanced, unless a commit is in flight.
  public func commit() {
    loop.preconditionOnLoop()
    let beyond = tracker.beyondSetAside
    if !beyond.isEmpty { onBeyondSetAside?(beyond) }
    guard !isCommitting else { return }
    let advanced = tracker.takeAdvanced()
    guard !advanced.isEmpty else { return }
    send(advanced) { [self] in lookForLeaving() }
  }

  /// Stops without a commit. Close the consumer first, which revokes its partitions.
  public func close() {
    timer?.close()
    timer = nil
    let going = leaving
    leaving = []
    for each in going { end(each) }
  }

  private func end(_ each: Leaving) {
    each.deadline.close()
    revoke(each.partitions)
    each.left()
    each.revocation.finish()
  }

  /// Skips partitions that were assigned again meanwhile.
  private func revoke(_ partitions: [AssignedPartition]) {
    for partition in partitions where tracker.progress(of: partition.index)?.generation == partition.generation {
      tracker.revoke(partition.index)
    }
  }

  private func send(_ offsets: [CommitOffset], _ then: @escaping () -> Void) {
    isCommitting = true
    guard let prepare else { return commit(offsets, then) }
    prepare(offsets) { [self] prepared in
      for offset in offsets where !prepared.contains(offset) { tracker.committed(offset, as: .again) }
      guard prepared.isEmpty else { return commit(prepared, then) }
      isCommitting = false
      then()
    }
  }

  private func commit(_ offsets: [CommitOffset], _ then: @escaping () -> Void) {
    consumer.commit(offsets) { [self] failed in
      isCommitting = false
      for offset in offsets {
        let error = failed[offset]
        tracker.committed(offset, as: error.map { $0.isRetriable ? .again : .givenUp } ?? .confirmed)
      }
      for error in Set(failed.values) { onError(error) }
      then()
    }
  }

  /// Revokes partitions without records in flight. Only one commit runs at a time, so none overtakes another.
  private func lookForLeaving() {
    for each in leaving where !each.isCommitting {
      if each.isOverdue || each.partitions.allSatisfy({ tracker.inFlight(of: $0.index) == 0 }) { leave(each.revocation) }
    }
  }

  private func overdue(_ revocation: Revocation) {
    guard let place = leaving.firstIndex(where: { $0.revocation === revocation }) else { return }
    leaving[place].isOverdue = true
    leave(revocation)
  }

  private func leave(_ revocation: Revocation) {
    guard !isCommitting, let place = leaving.firstIndex(where: { $0.revocation === revocation }), !leaving[place].isCommitting else {
      return
    }
    leaving[place].isCommitting = true
    let indexes = leaving[place].partitions.map(\.index)
    let gone = { [self] in
      guard let place = leaving.firstIndex(where: { $0.revocation === revocation }) else { return }
      end(leaving.remove(at: place))
      lookForLeaving()
    }
    let advanced = tracker.takeAdvanced(of: indexes)
    advanced.isEmpty ? gone() : send(advanced, gone)
  }
}
