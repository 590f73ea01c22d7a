import Kafka
import Store
import Worker

/// What the checkpoints report.
protocol CheckpointsOwner: AnyObject {
  /// A partition that begins is suspected.
  func suspected(_ partition: MarkedPartition, _ suspicion: CrashLoopDetector.Suspicion)
  /// The same lane has begun a partition again.
  func startedAgain(_ partition: MarkedPartition)
  /// A partition starts again from an earlier offset.
  func rewinds(_ partition: TopicPartition, from: Int64, to: Int64)
  /// Markers differ from those that this lane wrote.
  func markersDiffer()
  /// Some markers were not sent; a comparison levels them.
  func markersNotSent()
  /// These keys and fields do not hold markers. Fields count as missing and are overwritten; keys count as lost buckets.
  func markersUnreadable(_ places: [String])
  /// Redis refuses writes.
  func redisRefusedWrites(_ error: StoreError)
  /// The markers of so many partitions were written.
  func markersRaised(_ partitions: Int)
}

/// Reads, compares and writes the markers of the lane's partitions, as the table decides.
///
/// Redis may lose its latest writes: in a crash, or in a failover to a copy that was behind. A marker is written after the records below
/// it, so it is lost before them. Records that were applied since the last marker may be lost even if the marker is not. So after each sign
/// of loss the lane rewinds to the markers, whether these are lower or not, and applies the following records again. A marker that is
/// higher than the lane's belongs to another owner.
final class Checkpoints {
  /// The running work on the markers. Comparing and raising exclude each other: neither may see half of the other's writes.
  private enum Work {
    case none, comparing, raising
  }

  private let store: Markers
  private let crashes: CrashLoopDetector
  private(set) var table: CheckpointTable
  private var work = Work.none
  /// Whether second markers are being written.
  private var isWritingReadable = false
  /// Whether the next comparison writes all markers again, to see whether Redis takes writes.
  private var isProbing = false
  weak var owner: (any CheckpointsOwner)?

  init(_ store: Markers, _ crashes: CrashLoopDetector, _ topics: Topics) {
    self.store = store
    self.crashes = crashes
    table = CheckpointTable(topics)
  }

  /// Forgets partitions that have left.
  func left(_ partitions: [AssignedPartition]) { table.left(partitions) }

  /// Redis may have lost records that were applied since the markers.
  func distrust() { table.distrust() }

  /// Redis has refused writes. It is verified only when it takes the markers of owned or offered partitions.
  func probe() { isProbing = true }

  /// Compares a partition's first record with the marker at which reading began.
  func compareFirstRecord(of partition: TopicPartition, _ index: Int, offset: Int64, timestamp: Int64) -> CheckpointTable.FirstRecord {
    table.compareFirstRecord(of: partition, index, offset: offset, timestamp: timestamp)
  }

  /// A partition was read to its end. Returns the timestamp of the record below its marker, or -1 if it is unknown.
  func reachedEnd(_ index: Int, at offset: Int64) -> Int64 {
    table.reachedEnd(index, at: offset)
    return table.wanted(index)?.timestamp ?? -1
  }

  // MARK: Comparing

  /// Compares the markers of owned partitions, and begins offered ones.
  ///
  /// - Parameters:
  ///   - isNew: answers whether no partition of the cluster was ever processed; called when buckets are missing.
  ///   - noted: answers the incarnations in the group's notes; called for partitions without a marker in any bucket.
  func compare(
    _ consumer: Consumer, isNew: () async throws -> Bool, noted: ([TopicPartition]) async throws -> [TopicPartition: UInt32]
  ) async -> LanePhase.Finding {
    guard case .none = work else { return .again(afterMilliseconds: 20, "markers are being raised") }
    work = .comparing
    defer { work = .none }
    let owned = table.begun(consumer.assignment)
    let offers = consumer.offers
    let partitions = owned + offers
    let found = await store.read(partitions.map { table.marked($0.topicPartition) })
    let unreadable = store.takeDamage()
    if !unreadable.isEmpty { owner?.markersUnreadable(unreadable) }
    guard let buckets = found else { return .again(afterMilliseconds: 500, Self.reason("the markers could not be read", store.failure)) }
    if store.takeChange() { distrust() }
    let missing = buckets.indices.filter { buckets[$0] == nil }
    guard missing.isEmpty else {
      distrust()
      return await create(missing, isNew)
    }

    let markers = partitions.indices.map { place in buckets.map { $0?[place] } }
    let isProbe = isProbing
    switch table.compare(owned, Array(markers[..<owned.count]), isProbe: isProbe) {
    case .otherOwner(let partition): return .otherOwner(partition)
    case .own(let rewinds, let level):
      for rewind in rewinds {
        if let lost = rewind.lost { owner?.rewinds(rewind.partition.topicPartition, from: lost.from, to: lost.to) }
        consumer.startAgain(rewind.partition.index)
      }
      if !level.changes.isEmpty {
        let written = await store.write(level.changes)
        guard written.isComplete else {
          return .again(afterMilliseconds: 200, Self.reason("the markers could not be set", written.failure))
        }
      }
      table.leveled(level)
      if isProbe, rewinds.isEmpty, !owned.isEmpty { isProbing = false }
      // Partitions that start again are on offer now.
      if !rewinds.isEmpty { return .again(afterMilliseconds: 0, "partitions start again") }
    }
    let offered = Array(markers[owned.count...])
    let unmarked = zip(offers, offered).filter { $1.allSatisfy { $0 == nil } }.map(\.0.topicPartition)
    do {
      return await begin(offers, offered, noted: unmarked.isEmpty ? [:] : try await noted(unmarked), consumer)
    } catch {
      return .again(afterMilliseconds: 1_000, "the group's notes could not be read: \(error)")
    }
  }

  private static func reason(_ what: String, _ error: StoreError?) -> String { error.map { "\(what): \($0)" } ?? what }

  private func create(_ missing: [Int], _ isNew: () async throws -> Bool) async -> LanePhase.Finding {
    do {
      guard try await isNew() else { return .empty }
    } catch {
      return .again(afterMilliseconds: 1_000, "\(error)")
    }
    if let error = await store.create(missing) { return .again(afterMilliseconds: 500, "\(error)") }
    return .again(afterMilliseconds: 0, "the buckets were made")
  }

  /// Makes all buckets agree on where each partition begins, and begins it there.
  private func begin(
    _ offers: [AssignedPartition], _ markers: [[Marker?]], noted: [TopicPartition: UInt32], _ consumer: Consumer
  ) async -> LanePhase.Finding {
    guard !offers.isEmpty else { return Self.finding(consumer) }
    let starts = table.starts(offers, markers, noted: noted)
    if !starts.changes.isEmpty {
      let written = await store.write(starts.changes)
      if let refusal = written.refusal { owner?.redisRefusedWrites(refusal) }
      guard written.isComplete else { return .again(afterMilliseconds: 200, Self.reason("the markers could not be set", written.failure)) }
    }
    var suspicions: [MarkedPartition: CrashLoopDetector.Suspicion] = [:]
    do throws(StoreError) {
      // A partition that starts again has crashed no process.
      let others = zip(offers, starts.markers).filter { !$0.0.startsAgain }
      if !others.isEmpty {
        suspicions = try await crashes.began(others.map { (table.marked($0.topicPartition), $1.offset) })
      }
    } catch {
      if error.code == .writesRefused { owner?.redisRefusedWrites(error) }
      return .again(afterMilliseconds: 200, "the tries of partitions could not be counted: \(error)")
    }
    for (offer, start) in zip(offers, starts.markers) where consumer.begin(offer, at: start.readingOffset) {
      guard let assigned = consumer.assignment.first(where: { $0.index == offer.index }) else { continue }
      let marked = table.marked(assigned.topicPartition)
      crashes.watch(marked, assigned.index)
      table.began(assigned, at: start)
      if offer.startsAgain { owner?.startedAgain(marked) } else if let known = suspicions[marked] { owner?.suspected(marked, known) }
    }
    return Self.finding(consumer)
  }

  private static func finding(_ consumer: Consumer) -> LanePhase.Finding {
    consumer.offers.isEmpty ? .verified : .again(afterMilliseconds: 0, "more partitions were offered")
  }

  // MARK: Raising

  /// Raises the markers to offsets below which everything is durable. Calls back with those that every bucket has then.
  func raise(_ offsets: [CommitOffset], _ then: @escaping ([CommitOffset]) -> Void) {
    guard case .none = work else { return then([]) }
    let raise = table.raise(offsets)
    guard !raise.changes.isEmpty else { return then(raise.reached) }
    work = .raising
    store.write(raise.changes) { [self] written in
      work = .none
      owner?.markersRaised(raise.changes.count)
      let isKnown = written.failure == nil && written.lostBuckets == 0
      let done = table.raised(raise, refused: isKnown ? Set(written.mismatches.map(\.place)) : nil)
      if let refusal = written.refusal {
        owner?.redisRefusedWrites(refusal)
      } else if written.overload != nil {
        owner?.markersNotSent()
      } else if !written.isComplete {
        owner?.markersDiffer()
      }
      then(done)
    }
  }

  /// Writes the second markers: below them all requests are applied but those that wait for a newer program.
  ///
  /// A lane waits for these before its schedules fire (`ScheduleRestoration`). They are written at each interval at which
  /// they have advanced, as long as a request waits.
  func writeReadable(_ offsets: [CommitOffset]) {
    guard !isWritingReadable else { return }
    let (markers, changes) = table.readableMarkers(for: offsets)
    guard !changes.isEmpty else { return }
    isWritingReadable = true
    store.write(changes) { [self] written in
      isWritingReadable = false
      table.wroteReadable(markers, isComplete: written.isComplete)
      if let refusal = written.refusal {
        owner?.redisRefusedWrites(refusal)
      } else if written.lostBuckets > 0 || !written.mismatches.isEmpty {
        owner?.markersDiffer()
      }
    }
  }
}
