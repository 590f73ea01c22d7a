import Kafka
import Store
import Worker

/// What a lane owns of the partitions, and how far each is applied, as every bucket of Redis says: a value that knows neither Redis nor Kafka.
///
/// Where the markers are not as the lane has left them, or what was applied since may be lost, the partition starts again at the lowest of
/// them. So all that lies below the offset at which it is read then was applied in every bucket, and is there.
struct CheckpointTable {
  /// A partition from its begin to the end of its assignment.
  private struct Owned {
    let partition: AssignedPartition
    /// Where the marker stood when the partition began.
    let begun: Int64
    /// What was written last, in all buckets.
    var marker: Marker
    var phase: Phase
    /// Redis may have lost what was applied since the marker.
    var isUnverified = false

    /// The highest offset that some bucket may have of what the lane has written.
    var highest: Int64 {
      if case .raising(let new) = phase { new.offset } else { marker.offset }
    }
  }

  private enum Phase {
    /// The first record has not come yet, which shows whether the marker is of the topic that is there now.
    case unconfirmed
    /// Every bucket has the marker, as far as is known.
    case level
    /// Some buckets may have this one already.
    case raising(Marker)
  }

  private let topics: Topics
  private var owned: [Int: Owned] = [:]
  /// Partitions whose topic was found to be made again, each with the marker that does not fit it, and begins again. Where another marker
  /// stands by then, another owner has found the same, or Redis has changed: what was found does not count any more.
  private var madeAgain: [TopicPartition: Marker] = [:]
  /// Whether some partition's first record has not come yet: asked for each record.
  private(set) var hasUnconfirmed = false

  init(_ topics: Topics) { self.topics = topics }

  /// A partition as its markers name it.
  func marked(_ partition: TopicPartition) -> MarkedPartition {
    partition.topic == topics.devices ? .devices(partition.partition) : .requests(partition.partition)
  }

  // MARK: What is known

  /// Those of these partitions that have begun in this assignment.
  func begun(_ assignment: [AssignedPartition]) -> [AssignedPartition] { assignment.filter { owned[$0.index]?.partition == $0 } }

  /// How often the topic of a partition was deleted and made again.
  func incarnation(_ index: Int) -> UInt32 { owned[index]?.marker.incarnation ?? 0 }

  /// The offset below which all of a partition is applied, as every bucket says; 0 where that is not known.
  func marker(_ index: Int) -> Int64 {
    guard let each = owned[index], !each.isUnverified, !isUnconfirmed(index) else { return 0 }
    return each.marker.offset
  }

  /// The offset that was wanted when a partition began, or that its marker has reached since; nil where nothing was applied before.
  func wanted(_ index: Int) -> (offset: Int64, timestamp: Int64)? {
    owned[index].flatMap { $0.marker.offset > 0 ? ($0.marker.offset, $0.marker.timestamp) : nil }
  }

  /// The offset that was wanted when a partition began; nil as long as nothing shows that it is of the topic that is there now.
  func begun(_ index: Int) -> Int64? {
    guard let each = owned[index], each.begun > 0, !isUnconfirmed(index) else { return nil }
    return each.begun
  }

  // MARK: From the begin to the end

  /// Where partitions begin, and what is to change so that all buckets agree on that.
  ///
  /// - Parameters:
  ///   - found: for each of them the markers in all buckets.
  ///   - noted: the incarnations that the group has noted, of the partitions without any marker.
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

  /// The lowest marker; the beginning of this incarnation where one is missing. In an earlier incarnation a new record could count as older
  /// than those of the topic that is gone.
  private static func lowest(_ markers: [Marker?], _ incarnation: UInt32) -> Marker {
    let beginning = Marker(offset: 0, timestamp: -1, incarnation: incarnation)
    guard !markers.contains(nil) else { return beginning }
    return markers.compactMap(\.self).min { $0.offset < $1.offset } ?? beginning
  }

  /// A partition is read from its marker on, which stands in every bucket.
  mutating func began(_ partition: AssignedPartition, at marker: Marker) {
    madeAgain[partition.topicPartition] = nil
    let isConfirmed = marker.readingOffset.map { $0 == marker.offset } ?? true
    owned[partition.index] = Owned(
      partition: partition, begun: marker.offset, marker: marker, phase: isConfirmed ? .level : .unconfirmed)
    if !isConfirmed { hasUnconfirmed = true }
  }

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
  func isUnconfirmed(_ index: Int) -> Bool {
    if case .unconfirmed = owned[index]?.phase { true } else { false }
  }

  /// Judges a record by the marker that reading began at.
  mutating func judge(_ partition: TopicPartition, _ index: Int, offset: Int64, timestamp: Int64) -> FirstRecord {
    guard isUnconfirmed(index), let marker = owned[index]?.marker else { return .work }
    owned[index]?.phase = .level
    hasUnconfirmed = owned.keys.contains(where: isUnconfirmed)
    if offset >= marker.offset { return .work }
    if offset == marker.offset - 1, timestamp == marker.timestamp { return .skip }
    madeAgain[partition] = marker
    return .madeAgain
  }

  /// A partition was read to its end, which lies here: where the marker lies no higher, no record below it is left to contradict it.
  mutating func reachedEnd(_ index: Int, at offset: Int64) {
    guard isUnconfirmed(index), let marker = owned[index]?.marker, offset >= marker.offset else { return }
    owned[index]?.phase = .level
    hasUnconfirmed = owned.keys.contains(where: isUnconfirmed)
  }

  /// The partitions are gone.
  mutating func left(_ partitions: [AssignedPartition]) {
    for partition in partitions where owned[partition.index]?.partition.generation == partition.generation { owned[partition.index] = nil }
    hasUnconfirmed = owned.keys.contains(where: isUnconfirmed)
  }

  /// Redis may have lost something of all that was applied since the markers.
  mutating func distrust() {
    for index in owned.keys { owned[index]?.isUnverified = true }
  }

  // MARK: Comparing

  /// What the markers that Redis has say of what is owned.
  enum Comparison {
    /// A partition has another owner, whose markers are higher.
    case otherOwner(TopicPartition)
    /// These partitions start again, and these changes level the markers of the others.
    case own(rewinds: [Rewind], level: Level)
  }

  /// A partition that starts again.
  struct Rewind {
    let partition: AssignedPartition
    /// Where its marker was, and where it is found, if it is not as it was left.
    let lost: (from: Int64, to: Int64)?
  }

  /// Markers that are as they were left, but for what may have been written, or not, by a call that was not answered.
  struct Level {
    fileprivate var partitions: [AssignedPartition] = []
    /// What is to change, by bucket.
    fileprivate(set) var changes: [Int: [MarkerChange]] = [:]
  }

  /// Compares the markers of partitions that have begun.
  ///
  /// - Parameters:
  ///   - found: for each of them the markers in all buckets.
  ///   - isProbe: whether all markers are written again, to see whether Redis takes them.
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
    // With one partition's marker a bucket may have lost what others have applied above theirs.
    let isLossSeen = compared.contains { $0.lost != nil }
    var rewinds: [Rewind] = []
    var level = Level()
    for (each, found, lost) in compared {
      guard !isLossSeen, !each.isUnverified else {
        rewinds.append(Rewind(partition: each.partition, lost: lost))
        continue
      }
      // A write that was not answered may have been made in some buckets.
      for (bucket, marker) in found.enumerated() where isProbe || marker != each.marker {
        level.changes[bucket, default: []].append(
          MarkerChange(marked(each.partition.topicPartition), expected: marker, new: each.marker))
      }
      level.partitions.append(each.partition)
    }
    return .own(rewinds: rewinds, level: level)
  }

  /// The markers stand in every bucket as they were left. Until then a bucket may have what was being written.
  mutating func leveled(_ level: Level) {
    for partition in level.partitions where owned[partition.index]?.partition == partition {
      if case .raising = owned[partition.index]?.phase { owned[partition.index]?.phase = .level }
    }
  }

  // MARK: Raising

  /// Markers that are being raised.
  struct Raise {
    /// What is to change, in every bucket.
    fileprivate(set) var changes: [MarkerChange] = []
    /// The offsets that the changes stand for.
    fileprivate var offsets: [CommitOffset] = []
    /// Offsets that every bucket has already.
    fileprivate(set) var reached: [CommitOffset] = []
  }

  /// Begins to raise the markers to offsets below which everything is durable; `raised` follows where there are changes.
  mutating func raise(_ offsets: [CommitOffset]) -> Raise {
    var raise = Raise()
    for offset in offsets {
      // Of a partition that is being given up nobody rewinds: what Redis may have forgotten is left to the next owner.
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

  /// The markers were written.
  ///
  /// - Parameter refused: places of changes that some bucket has not made; nil where it is not known what was written.
  /// - Returns: the offsets that every bucket has, also where it had them before.
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
