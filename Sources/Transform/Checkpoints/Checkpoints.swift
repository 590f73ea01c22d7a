import Kafka
import Store
import Worker

/// Whom the checkpoints tell.
protocol CheckpointsOwner: AnyObject {
  /// Partitions begin, and this is suspected of them.
  func suspected(_ partition: MarkedPartition, _ suspicion: CrashLoopDetector.Suspicion)
  /// A partition was begun once more by the same lane.
  func startedAgain(_ partition: MarkedPartition)
  /// A partition starts again from an earlier offset.
  func rewinds(_ partition: TopicPartition, from: Int64, to: Int64)
  /// Markers were found that this lane has not left so.
  func markersDiffer()
  /// Some of the markers were not sent; a comparison levels them.
  func markersNotSent()
  /// These keys and fields of markers hold something else: fields count as missing and are written over, keys count as lost buckets.
  func markersUnreadable(_ places: [String])
  /// Redis takes nothing that writes.
  func redisRefusedWrites(_ error: StoreError)
  /// The markers of so many partitions were written.
  func markersRaised(_ partitions: Int)
}

/// The markers of what the lane owns, from the offer to the last one: reads, compares and writes them, as the table decides. Loop-confined.
///
/// Redis may lose the end of what was written to it: in a crash, or in a failover to a copy that was behind. The markers are written
/// behind what they stand for, so they are lost before it. What was applied since the last marker may be lost even where the marker is not:
/// after each sign of that the lane rewinds to the markers, be they lower than it has left them or the same, and applies again what
/// follows. Markers that are higher have another owner.
final class Checkpoints {
  /// What the comparison of the markers has found.
  enum Finding {
    /// All partitions that were offered have begun, and what Redis has is what was written.
    case verified
    /// Something has changed meanwhile, or did not answer: compare again after so many milliseconds.
    case again(afterMilliseconds: Int, String)
    /// Redis has lost everything, or so much that it looks like everything.
    case empty
    /// A partition has another owner: leave the group and join it again.
    case otherOwner(TopicPartition)

    /// The same for the lane's phase.
    var phase: LanePhase.Finding {
      switch self {
      case .verified: .verified
      case .again(let milliseconds, _): .again(afterMilliseconds: milliseconds)
      case .empty: .empty
      case .otherOwner: .otherOwner
      }
    }
  }

  /// Who is at work on the markers: neither of the two may see the other's writing half done.
  private enum Work {
    case none, comparing, raising
  }

  private let store: Markers
  private let crashes: CrashLoopDetector
  private(set) var table: CheckpointTable
  private var work = Work.none
  /// The next comparison writes all markers again, to see whether Redis takes them.
  private var isProbing = false
  weak var owner: (any CheckpointsOwner)?

  init(_ store: Markers, _ crashes: CrashLoopDetector, _ topics: Topics) {
    self.store = store
    self.crashes = crashes
    table = CheckpointTable(topics)
  }

  /// The partitions are gone.
  func left(_ partitions: [AssignedPartition]) { table.left(partitions) }

  /// Redis may have lost something of all that was applied since the markers.
  func distrust() { table.distrust() }

  /// Redis has refused what writes: it is verified only when it takes the markers of what is owned, or of what is on offer.
  func probe() { isProbing = true }

  /// Judges a record by the marker that reading of its partition began at.
  func judge(_ partition: TopicPartition, _ index: Int, offset: Int64, timestamp: Int64) -> CheckpointTable.FirstRecord {
    table.judge(partition, index, offset: offset, timestamp: timestamp)
  }

  /// A partition was read to its end; answers with the timestamp of the record below its marker, -1 where that is not known.
  func reachedEnd(_ index: Int, at offset: Int64) -> Int64 {
    table.reachedEnd(index, at: offset)
    return table.wanted(index)?.timestamp ?? -1
  }

  // MARK: Comparing

  /// Compares the markers of what is owned, and begins what is offered.
  ///
  /// - Parameters:
  ///   - isNew: whether no partition of the cluster was ever worked on, which is asked when buckets are missing.
  ///   - noted: the incarnations that the group has noted, which is asked for partitions that have no marker in any bucket.
  func compare(
    _ consumer: Consumer, isNew: () async throws -> Bool, noted: ([TopicPartition]) async throws -> [TopicPartition: UInt32]
  ) async -> Finding {
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
      // What starts again is on offer now.
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

  private func create(_ missing: [Int], _ isNew: () async throws -> Bool) async -> Finding {
    do {
      guard try await isNew() else { return .empty }
    } catch {
      return .again(afterMilliseconds: 1_000, "\(error)")
    }
    if let error = await store.create(missing) { return .again(afterMilliseconds: 500, "\(error)") }
    return .again(afterMilliseconds: 0, "the buckets were made")
  }

  /// Has all buckets agree on where each partition begins, and begins it there.
  private func begin(
    _ offers: [AssignedPartition], _ markers: [[Marker?]], noted: [TopicPartition: UInt32], _ consumer: Consumer
  ) async -> Finding {
    guard !offers.isEmpty else { return Self.finding(consumer) }
    let starts = table.starts(offers, markers, noted: noted)
    if !starts.changes.isEmpty {
      let written = await store.write(starts.changes)
      if let refusal = written.refusal { owner?.redisRefusedWrites(refusal) }
      guard written.isComplete else { return .again(afterMilliseconds: 200, Self.reason("the markers could not be set", written.failure)) }
    }
    var suspicions: [MarkedPartition: CrashLoopDetector.Suspicion] = [:]
    do throws(StoreError) {
      // Of what starts again no process has ended.
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

  private static func finding(_ consumer: Consumer) -> Finding {
    consumer.offers.isEmpty ? .verified : .again(afterMilliseconds: 0, "more partitions were offered")
  }

  // MARK: Raising

  /// Raises the markers to offsets below which everything is durable; answers with those that every bucket has, also where it had them before.
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
}
