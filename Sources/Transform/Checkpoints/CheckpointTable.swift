import Kafka
import Store
import Worker

/// The partitions that a lane owns, and how far every bucket of Redis has applied each. A value.
///
/// A partition starts again at its lowest marker when the markers differ from those that the lane wrote, or when records that were applied
/// since may be lost. So every bucket has all records below the offset at which it is read again.
struct CheckpointTable {
  /// A partition, from its beginning until its assignment ends.
  private struct Owned {
    let partition: AssignedPartition
    /// Where the marker stood when the partition began.
    let begun: Int64
    /// The marker that the lane wrote last, in all buckets.
    var marker: Marker
    var phase: Phase
    /// The second marker that the lane wrote last in this assignment, in all buckets.
    var readable: Marker?
    /// Redis may have lost records that were applied since the marker.
    var isUnverified = false

    /// The highest offset that the lane has written, or is writing, to some bucket.
    var highest: Int64 {
      if case .raising(let new) = phase { new.offset } else { marker.offset }
    }
  }

  private enum Phase {
    /// The first record has not come yet. It shows whether the marker belongs to the present topic.
    case unconfirmed
    /// Every bucket has the marker, as far as is known.
    case level
    /// Some buckets may already have this marker.
    case raising(Marker)
  }

  private let topics: Topics
  private var owned: [Int: Owned] = [:]
  /// Partitions that begin again because their topic was made again, each with the marker that did not fit. If the partition has another
  /// marker by then, another owner has found the same, or Redis has changed: then the finding does not count.
  private var madeAgain: [TopicPartition: Marker] = [:]
  /// Whether some partition's first record has not come yet. Stored, since it is read for each record.
  private(set) var hasUnconfirmed = false

  init(_ topics: Topics) { self.topics = topics }

  /// A partition as its markers name it.
  func marked(_ partition: TopicPartition) -> MarkedPartition {
    partition.topic == topics.devices ? .devices(partition.partition) : .requests(partition.partition)
  }

  // MARK: Facts

  /// The partitions among these that have begun in this assignment.
  func begun(_ assignment: [AssignedPartition]) -> [AssignedPartition] { assignment.filter { owned[$0.index]?.partition == $0 } }

  /// How often the topic of a partition was deleted and made again.
  func incarnation(_ index: Int) -> UInt32 { owned[index]?.marker.incarnation ?? 0 }

  /// The offset below which every bucket has applied the partition; 0 if unknown.
  func marker(_ index: Int) -> Int64 {
    guard let each = owned[index], !each.isUnverified, !isUnconfirmed(index) else { return 0 }
    return each.marker.offset
  }

  /// The offset of a partition's marker, and the timestamp below it; nil if nothing was applied before.
  func wanted(_ index: Int) -> (offset: Int64, timestamp: Int64)? {
    owned[index].flatMap { $0.marker.offset > 0 ? ($0.marker.offset, $0.marker.timestamp) : nil }
  }

  /// The offset at which a partition began; nil until it is known to belong to the present topic.
  func begun(_ index: Int) -> Int64? {
    guard let each = owned[index], each.begun > 0, !isUnconfirmed(index) else { return nil }
    return each.begun
  }

  // MARK: Beginning and leaving

  /// The markers at which partitions begin, and the changes that make all buckets agree on them.
  ///
  /// - Parameters:
  ///   - found: for each of them the markers in all buckets.
  ///   - noted: the incarnations in the group's notes, for partitions without any marker.
  func starts(
    _ offers: [AssignedPartition], _ found: [[Marker?]], noted: [TopicPartition: UInt32]
  ) -> (markers: [Marker], changes: [Int: [MarkerChange]]) {
    let markers = zip(offers, found).map { offer, found in
      let incarnation = found.compactMap { $0?.incarnation }.max() ?? noted[offer.topicPartition] ?? 0
      let lowest = Self.lowest(found, incarnation)
      guard madeAgain[offer.topicPartition] == lowest else { return lowest }
      return Marker(offset: 0, timestamp: -1, incarnation: incarnation &+ 1)
    }
    var changes: [Int: [MarkerChange]] = [:]
    for (place, offer) in offers.enumerated() {
      for (bucket, marker) in found[place].enumerated() where marker != markers[place] {
        changes[bucket, default: []].append(MarkerChange(marked(offer.topicPartition), expected: marker, new: markers[place]))
      }
    }
    return (markers, changes)
  }

  /// The lowest marker, or the beginning of this incarnation if one is missing. In an earlier incarnation a new record could count as older
  /// than records of the deleted topic.
  private static func lowest(_ markers: [Marker?], _ incarnation: UInt32) -> Marker {
    let beginning = Marker(offset: 0, timestamp: -1, incarnation: incarnation)
    guard !markers.contains(nil) else { return beginning }
    return markers.compactMap(\.self).min { $0.offset < $1.offset } ?? beginning
  }

  /// A partition is read from this marker on; every bucket has it.
  mutating func began(_ partition: AssignedPartition, at marker: Marker) {
    madeAgain[partition.topicPartition] = nil
    let isConfirmed = marker.readingOffset.map { $0 == marker.offset } ?? true
    owned[partition.index] = Owned(
      partition: partition, begun: marker.offset, marker: marker, phase: isConfirmed ? .level : .unconfirmed)
    if !isConfirmed { hasUnconfirmed = true }
  }

  /// What a partition's first record shows about the marker at which reading began.
  enum FirstRecord {
    /// Process it.
    case work
    /// It lies below the marker, so it is applied.
    case skip
    /// The marker was written for another record: the topic was made again.
    case madeAgain
  }

  /// Whether the first record of a partition has not come yet.
  func isUnconfirmed(_ index: Int) -> Bool {
    if case .unconfirmed = owned[index]?.phase { true } else { false }
  }

  /// Compares a partition's first record with the marker that reading began at.
  mutating func compareFirstRecord(of partition: TopicPartition, _ index: Int, offset: Int64, timestamp: Int64) -> FirstRecord {
    guard isUnconfirmed(index), let marker = owned[index]?.marker else { return .work }
    owned[index]?.phase = .level
    hasUnconfirmed = owned.keys.contains(where: isUnconfirmed)
    if offset >= marker.offset { return .work }
    if offset == marker.offset - 1, timestamp == marker.timestamp { return .skip }
    madeAgain[partition] = marker
    return .madeAgain
  }

  /// A partition was read to its end at this offset. If its marker is not higher, no record is left that could contradict the marker.
  mutating func reachedEnd(_ index: Int, at offset: Int64) {
    guard isUnconfirmed(index), let marker = owned[index]?.marker, offset >= marker.offset else { return }
    owned[index]?.phase = .level
    hasUnconfirmed = owned.keys.contains(where: isUnconfirmed)
  }

  /// Forgets partitions that have left.
  mutating func left(_ partitions: [AssignedPartition]) {
    for partition in partitions where owned[partition.index]?.partition.generation == partition.generation { owned[partition.index] = nil }
    hasUnconfirmed = owned.keys.contains(where: isUnconfirmed)
  }

  /// Redis may have lost records that were applied since the markers.
  mutating func distrust() {
    for index in owned.keys { owned[index]?.isUnverified = true }
  }

  // MARK: Comparing

  /// What the markers in Redis show about the owned partitions.
  enum Comparison {
    /// A partition has another owner, whose markers are higher.
    case otherOwner(TopicPartition)
    /// These partitions start again, and these changes level the markers of the others.
    case own(rewinds: [Rewind], level: Level)
  }

  /// A partition that starts again.
  struct Rewind {
    let partition: AssignedPartition
    /// The offset of the lane's marker and that of the one found, if they differ.
    let lost: (from: Int64, to: Int64)?
  }

  /// Partitions whose markers are as the lane wrote them, except for the effect of unanswered calls.
  struct Level {
    fileprivate var partitions: [AssignedPartition] = []
    /// The changes, by bucket.
    fileprivate(set) var changes: [Int: [MarkerChange]] = [:]
  }

  /// Compares the markers of partitions that have begun.
  ///
  /// - Parameters:
  ///   - found: for each of them the markers in all buckets.
  ///   - isProbe: whether to write all markers again, to see whether Redis takes writes.
  func compare(_ partitions: [AssignedPartition], _ found: [[Marker?]], isProbe: Bool) -> Comparison {
    var compared: [(each: Owned, found: [Marker?], lost: (from: Int64, to: Int64)?)] = []
    for (partition, found) in zip(partitions, found) {
      guard let each = owned[partition.index], each.partition == partition else { continue }
      if found.contains(where: { ($0?.offset ?? 0) > each.highest }) { return .otherOwner(partition.topicPartition) }
      // The marker stood in every bucket when the partition began.
      let isMissing = found.contains { $0 == nil }
      let lowest = found.map { $0?.offset ?? 0 }.min() ?? 0
      compared.append((each, found, isMissing || lowest < each.marker.offset ? (each.marker.offset, lowest) : nil))
    }
    // A bucket that lost one partition's marker may also have lost records of others above their markers.
    let isLossSeen = compared.contains { $0.lost != nil }
    var rewinds: [Rewind] = []
    var level = Level()
    for (each, found, lost) in compared {
      guard !isLossSeen, !each.isUnverified else {
        rewinds.append(Rewind(partition: each.partition, lost: lost))
        continue
      }
      // Some buckets may have made a write that was not answered.
      for (bucket, marker) in found.enumerated() where isProbe || marker != each.marker {
        level.changes[bucket, default: []].append(
          MarkerChange(marked(each.partition.topicPartition), expected: marker, new: each.marker))
      }
      level.partitions.append(each.partition)
    }
    return .own(rewinds: rewinds, level: level)
  }

  /// Every bucket has the lane's markers. Before that a bucket may have had a marker that was being raised.
  mutating func leveled(_ level: Level) {
    for partition in level.partitions where owned[partition.index]?.partition == partition {
      if case .raising = owned[partition.index]?.phase { owned[partition.index]?.phase = .level }
    }
  }

  // MARK: Raising

  /// Markers that are being raised.
  struct Raise {
    /// The changes, for every bucket.
    fileprivate(set) var changes: [MarkerChange] = []
    /// The offset of each change.
    fileprivate var offsets: [CommitOffset] = []
    /// Offsets that every bucket already has.
    fileprivate(set) var reached: [CommitOffset] = []
  }

  /// Begins to raise the markers to offsets below which everything is durable. If there are changes, `raised` follows.
  mutating func raise(_ offsets: [CommitOffset]) -> Raise {
    var raise = Raise()
    for offset in offsets {
      // A partition that is being given up does not rewind: its next owner applies what Redis may have lost.
      guard let each = owned[offset.partition], each.partition.generation == offset.generation, case .level = each.phase,
        !each.isUnverified, offset.offset >= each.marker.offset
      else { continue }
      guard offset.offset > each.marker.offset else {
        raise.reached.append(offset)
        continue
      }
      let new = Marker(offset: offset.offset, timestamp: offset.timestamp, incarnation: each.marker.incarnation)
      raise.changes.append(MarkerChange(marked(each.partition.topicPartition), expected: each.marker, new: new))
      raise.offsets.append(offset)
      owned[offset.partition]?.phase = .raising(new)
    }
    return raise
  }

  /// The second markers of partitions that have requests which wait for a newer program, where they differ from those written last, and their
  /// changes. `wroteReadable` follows.
  ///
  /// Only the first of an assignment is set whatever stands there: what differs later shows that Redis has lost something.
  func readableMarkers(for offsets: [CommitOffset]) -> (markers: [Int: Marker], changes: [MarkerChange]) {
    var (markers, changes): ([Int: Marker], [MarkerChange]) = ([:], [])
    for offset in offsets {
      guard let each = owned[offset.partition], each.partition.generation == offset.generation, !isUnconfirmed(offset.partition),
        !each.isUnverified, offset.offset > each.marker.offset
      else { continue }
      let next = Marker(offset: offset.offset, timestamp: offset.timestamp, incarnation: each.marker.incarnation)
      guard next != each.readable else { continue }
      let partition = MarkedPartition.readableRequests(each.partition.topicPartition.partition)
      markers[offset.partition] = next
      changes.append(
        each.readable.map { MarkerChange(partition, expected: $0, new: next) } ?? MarkerChange(partition, forcing: next))
    }
    return (markers, changes)
  }

  /// The second markers were written to all buckets, or perhaps not.
  mutating func wroteReadable(_ markers: [Int: Marker], isComplete: Bool) {
    for (index, marker) in markers { owned[index]?.readable = isComplete ? marker : nil }
  }

  /// The markers were written.
  ///
  /// - Parameter refused: places of changes that some bucket has not made; nil if unknown.
  /// - Returns: the offsets that every bucket has, including those that it had before.
  mutating func raised(_ raise: Raise, refused: Set<Int>?) -> [CommitOffset] {
    guard let refused else { return [] }
    var done = raise.reached
    for (place, offset) in raise.offsets.enumerated() where !refused.contains(place) {
      guard let each = owned[offset.partition], each.partition.generation == offset.generation, case .raising(let new) = each.phase else {
        continue
      }
      owned[offset.partition]?.marker = new
      owned[offset.partition]?.phase = .level
      done.append(offset)
    }
    return done
  }
}
