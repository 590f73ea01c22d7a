import Kafka
import Store
import Worker

/// Whom the checkpoints tell.
protocol CheckpointsOwner: AnyObject {
  /// Partitions begin, and this is suspected of them.
  func suspected(_ suspicion: CrashLoopDetector.Suspicion)
  /// A partition starts again from an earlier offset.
  func rewinds(_ partition: TopicPartition, from: Int64, to: Int64)
  /// Markers were found that this lane has not left so.
  func markersDiffer()
  /// Some of the markers were not sent; a comparison levels them.
  func markersNotSent()
  /// Redis takes nothing that writes.
  func redisRefusedWrites(_ error: StoreError)
  /// The markers of so many partitions were written.
  func markersRaised(_ partitions: Int)
}

/// What the lane owns of the partitions, and how far: from the offer to the last marker. Loop-confined.
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

  private struct Held {
    var partition: AssignedPartition
    let marked: MarkedPartition
    /// Where the marker stood when the partition began.
    let begun: Int64
    /// What was written last, in all buckets.
    var marker: Marker
    /// What is being written.
    var pending: Marker?
    /// The marker that reading began at, until the first record has come.
    var unconfirmed: Marker?
    /// Redis may have lost what was applied since the marker.
    var isUnverified = false
  }

  private let store: Markers
  private let crashes: CrashLoopDetector
  private let topics: Topics
  private var held: [Int: Held] = [:]
  /// Partitions whose topic was found to be made again, each with the marker that does not fit it, and begins again. Where another marker
  /// stands by then, another owner has found the same, or Redis has changed: what was found does not count any more.
  private var madeAgain: [TopicPartition: Marker] = [:]
  /// Partitions that have begun, by index, until they are idle: no process has ended over them then.
  private var counted: [Int: MarkedPartition] = [:]
  // Neither of the two may see the other's writing half done.
  private var isRaising = false
  private var isChecking = false
  /// The next comparison writes all markers again, to see whether Redis takes them.
  private var isProbing = false
  /// Whether some partition's first record has not come yet.
  private(set) var hasUnconfirmed = false
  weak var owner: (any CheckpointsOwner)?

  init(_ store: Markers, _ crashes: CrashLoopDetector, _ topics: Topics) {
    self.store = store
    self.crashes = crashes
    self.topics = topics
  }

  /// The same partition as its markers name it.
  func marked(_ partition: TopicPartition) -> MarkedPartition {
    partition.topic == topics.devices ? .devices(partition.partition) : .requests(partition.partition)
  }

  /// The partitions are gone.
  func revoked(_ partitions: [AssignedPartition]) {
    for partition in partitions {
      counted[partition.index] = nil
      if held[partition.index]?.partition.generation == partition.generation { held[partition.index] = nil }
    }
  }

  /// How often the topic of a partition was deleted and made again.
  func incarnation(_ index: Int) -> UInt32 { held[index]?.marker.incarnation ?? 0 }

  /// The offset below which all of a partition is applied, as every bucket says; 0 where that is not known.
  func marker(_ index: Int) -> Int64 {
    guard let each = held[index], !each.isUnverified, each.unconfirmed == nil else { return 0 }
    return each.marker.offset
  }

  /// The offset that was wanted when a partition began, or that its marker has reached since; nil where nothing was applied before.
  func wanted(_ index: Int) -> (offset: Int64, timestamp: Int64)? {
    held[index].flatMap { $0.marker.offset > 0 ? ($0.marker.offset, $0.marker.timestamp) : nil }
  }

  /// The offset that was wanted when a partition began; nil as long as nothing shows that it is of the topic that is there now.
  func begun(_ index: Int) -> Int64? { held[index].flatMap { $0.unconfirmed == nil && $0.begun > 0 ? $0.begun : nil } }

  /// Partitions that were begun and have nothing under way: no process has ended over them.
  func takeHealthy(_ isIdle: (_ index: Int) -> Bool) -> [MarkedPartition] {
    let healthy = counted.filter { isIdle($0.key) }
    for index in healthy.keys { counted[index] = nil }
    return Array(healthy.values)
  }

  /// Whether there are partitions that have not been idle since they were begun.
  var hasCounted: Bool { !counted.isEmpty }

  /// Redis may have lost something of all that was applied since the markers.
  func distrust() {
    for index in held.keys { held[index]?.isUnverified = true }
  }

  /// Redis has refused what writes: it is verified only when it takes the markers of what is owned, or of what is on offer.
  func probe() { isProbing = true }

  /// Compares the markers of what is owned, and begins what is offered.
  ///
  /// - Parameter isNew: whether no partition of the cluster was ever worked on, which is asked when buckets are missing.
  func compare(_ consumer: Consumer, isNew: () async throws -> Bool) async -> Finding {
    guard !isRaising else { return .again(afterMilliseconds: 20, "markers are being raised") }
    isChecking = true
    defer { isChecking = false }
    let assigned = Set(consumer.assignment)
    let owned = held.values.filter { assigned.contains($0.partition) }
    let offers = consumer.offers
    let partitions = owned.map(\.partition) + offers
    guard let buckets = await store.read(partitions.map { marked($0.topicPartition) }) else {
      return .again(afterMilliseconds: 500, "the markers could not be read")
    }
    if store.takeChange() { distrust() }
    let missing = buckets.indices.filter { buckets[$0] == nil }
    guard missing.isEmpty else {
      distrust()
      return await create(missing, isNew)
    }

    let markers = partitions.indices.map { place in buckets.map { $0?[place] } }
    let probes = isProbing
    var level: [Int: [MarkerChange]] = [:]
    var leveled: [AssignedPartition] = []
    var rewinds = false
    for (place, each) in owned.enumerated() where held[each.partition.index]?.partition == each.partition {
      let found = markers[place]
      let highest = each.pending?.offset ?? each.marker.offset
      if found.contains(where: { ($0?.offset ?? 0) > highest }) { return .otherOwner(each.partition.topicPartition) }
      let lowest = found.map { $0?.offset ?? 0 }.min() ?? 0
      if lowest < each.marker.offset || held[each.partition.index]?.isUnverified == true {
        if lowest < each.marker.offset { owner?.rewinds(each.partition.topicPartition, from: each.marker.offset, to: lowest) }
        consumer.startAgain(each.partition.index)
        rewinds = true
      } else {
        // A write that was not answered may have been made in some buckets.
        for (bucket, marker) in found.enumerated() where probes || marker != each.marker {
          level[bucket, default: []].append(MarkerChange(each.marked, expected: marker, new: each.marker))
        }
        leveled.append(each.partition)
      }
    }
    if !level.isEmpty, await !store.write(level).isComplete { return .again(afterMilliseconds: 200, "the markers could not be set") }
    // Until then a bucket may have what was being written.
    for partition in leveled where held[partition.index]?.partition == partition { held[partition.index]?.pending = nil }
    if probes, !rewinds, !owned.isEmpty { isProbing = false }
    // What starts again is on offer now.
    if rewinds { return .again(afterMilliseconds: 0, "partitions start again") }
    return await begin(offers, Array(markers[owned.count...]), consumer)
  }

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
  private func begin(_ offers: [AssignedPartition], _ markers: [[Marker?]], _ consumer: Consumer) async -> Finding {
    guard !offers.isEmpty else { return Self.finding(consumer) }
    let starts = zip(offers, markers).map { offer, markers in
      let start = Self.start(markers)
      guard madeAgain[offer.topicPartition] == start else { return start }
      return Marker(offset: 0, timestamp: -1, incarnation: (markers.compactMap { $0?.incarnation }.max() ?? 0) + 1)
    }
    var changes: [Int: [MarkerChange]] = [:]
    for (place, offer) in offers.enumerated() {
      for (bucket, marker) in markers[place].enumerated() where marker != starts[place] {
        changes[bucket, default: []].append(MarkerChange(marked(offer.topicPartition), expected: marker, new: starts[place]))
      }
    }
    if !changes.isEmpty {
      let written = await store.write(changes)
      if let refusal = written.refusal { owner?.redisRefusedWrites(refusal) }
      if !written.isComplete { return .again(afterMilliseconds: 200, "the markers could not be set") }
    }
    do throws(StoreError) {
      // Of what starts again no process has ended.
      let others = zip(offers, starts).filter { !$0.0.startsAgain }
      if !others.isEmpty {
        let suspicion = try await crashes.began(others.map { (marked($0.topicPartition), $1.offset) })
        owner?.suspected(suspicion)
      }
    } catch {
      if error.code == .writesRefused { owner?.redisRefusedWrites(error) }
      return .again(afterMilliseconds: 200, "\(error)")
    }
    for (offer, start) in zip(offers, starts) where consumer.begin(offer, at: start.readingOffset) {
      guard let assigned = consumer.assignment.first(where: { $0.index == offer.index }) else { continue }
      madeAgain[offer.topicPartition] = nil
      counted[assigned.index] = marked(offer.topicPartition)
      let isConfirmed = start.readingOffset.map { $0 == start.offset } ?? true
      if !isConfirmed { hasUnconfirmed = true }
      held[offer.index] = Held(
        partition: assigned, marked: marked(offer.topicPartition), begun: start.offset, marker: start,
        unconfirmed: isConfirmed ? nil : start)
    }
    return Self.finding(consumer)
  }

  private static func finding(_ consumer: Consumer) -> Finding {
    consumer.offers.isEmpty ? .verified : .again(afterMilliseconds: 0, "more partitions were offered")
  }

  /// The lowest marker; the beginning where one is missing.
  private static func start(_ markers: [Marker?]) -> Marker {
    var lowest: Marker?
    for marker in markers {
      guard let marker else { return .beginning }
      if marker.offset < lowest?.offset ?? .max { lowest = marker }
    }
    return lowest ?? .beginning
  }

  // MARK: A topic made again

  /// What a partition's first record shows of the marker that reading began at.
  enum FirstRecord {
    /// Work on it.
    case work
    /// It lies below the marker: it is applied.
    case skip
    /// It is not the record that the marker was written for: the topic was made again.
    case madeAgain
  }

  /// Whether the first record of a partition has not come yet.
  func isUnconfirmed(_ index: Int) -> Bool { held[index]?.unconfirmed != nil }

  /// Judges a record by the marker that reading began at.
  func judge(_ partition: TopicPartition, _ index: Int, offset: Int64, timestamp: Int64) -> FirstRecord {
    guard let marker = held[index]?.unconfirmed else { return .work }
    held[index]?.unconfirmed = nil
    hasUnconfirmed = held.values.contains { $0.unconfirmed != nil }
    if offset >= marker.offset { return .work }
    if offset == marker.offset - 1, timestamp == marker.timestamp { return .skip }
    madeAgain[partition] = marker
    return .madeAgain
  }

  // MARK: Raising

  /// Raises the markers to offsets below which everything is durable; answers with those that every bucket has, also where it had them before.
  func raise(_ offsets: [CommitOffset], _ then: @escaping ([CommitOffset]) -> Void) {
    guard !isChecking, !isRaising else { return then([]) }
    var changes: [MarkerChange] = []
    var raised: [CommitOffset] = []
    var reached: [CommitOffset] = []
    for offset in offsets {
      // Of a partition that is being given up nobody rewinds: what Redis may have forgotten is left to the next owner.
      guard let each = held[offset.partition], each.partition.generation == offset.generation, each.pending == nil, !each.isUnverified,
        offset.offset >= each.marker.offset
      else { continue }
      guard offset.offset > each.marker.offset else {
        reached.append(offset)
        continue
      }
      let new = Marker(offset: offset.offset, timestamp: offset.timestamp, incarnation: each.marker.incarnation)
      changes.append(MarkerChange(each.marked, expected: each.marker, new: new))
      raised.append(offset)
      held[offset.partition]?.pending = new
    }
    guard !changes.isEmpty else { return then(reached) }
    isRaising = true
    store.write(changes) { [self] written in
      isRaising = false
      owner?.markersRaised(changes.count)
      let refused = Set(written.mismatches.map(\.place))
      let isUnknown = written.failure != nil || written.lostBuckets > 0
      var done = isUnknown ? [] : reached
      for (place, offset) in raised.enumerated() where !isUnknown && !refused.contains(place) {
        guard let each = held[offset.partition], each.partition.generation == offset.generation, let pending = each.pending else {
          continue
        }
        held[offset.partition]?.marker = pending
        held[offset.partition]?.pending = nil
        done.append(offset)
      }
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
