package import Kafka
import Worker

/// The records that the user wants to replay, and what becomes of them.
package struct ReplaySelection: Sendable {
  /// The topic to read.
  package var topic: String
  /// The topic to write.
  package var destination: String
  /// The partitions; nil for all.
  package var partitions: Set<Int32>?
  /// Only these offsets of these partitions; nil for all.
  package var offsets: [Int32: Range<Int64>]?
  /// The time of publication.
  package var published = TimeRange()
  /// Selects the requests.
  package var filter = ReplayFilter()
  /// Whether only unfinished requests are replayed.
  package var isOfUnfinished = false
  /// Whether they become new requests.
  package var isNew = false

  /// Makes a selection of a whole topic.
  package init(topic: String, destination: String) { (self.topic, self.destination) = (topic, destination) }

  /// Whether it writes into the topic that it reads.
  package var isOfRequests: Bool { topic == destination }

  /// Whether effects are predicted. Unfinished requests are new work, and events have no effect.
  package var isForecast: Bool { isOfRequests && !isOfUnfinished }
}

/// Why a replay is refused.
package enum ReplayRefusal: Error, Sendable, Equatable {
  /// There is no such partition. `count` is the number of partitions.
  case noPartition(TopicPartition, count: Int)
  /// The wanted offsets begin before the oldest record.
  case gone(TopicPartition, wanted: Range<Int64>, oldest: Int64)
  /// The wanted offsets end after the newest record.
  case notYetThere(TopicPartition, wanted: Range<Int64>, end: Int64)
  /// Another cluster has begun the replay.
  case otherCluster
  /// The topic was made again after the replay began.
  case topicMadeAgain(String)
  /// The destination is missing.
  case noDestination(String)
  /// The destination has fewer partitions than the source.
  case tooFewPartitions(String, count: Int, needed: Int)
}

extension ReplayPlan {
  /// Makes a plan up to the present ends of the topic.
  ///
  /// - Parameter run: the replay's name.
  package init(_ selection: ReplaySelection, run: String, cluster: String, _ admin: Admin) async throws {
    let brokers = try await admin.describeCluster().id ?? ""
    let stretches = try await admin.stretches(of: selection.topic, selection.published)
    let count = stretches.count
    for number in (selection.partitions ?? []).union((selection.offsets ?? [:]).keys) where !(0..<count).contains(Int(number)) {
      throw ReplayRefusal.noPartition(TopicPartition(selection.topic, number), count: count)
    }
    let all = stretches.map(\.partition)
    let logs = try await admin.ends(of: all)
    let ends =
      selection.isOfRequests ? logs : try await Self.ends(of: selection.destination, needed: count, admin)
    var partitions: [ReplayedPartition] = []
    for stretch in stretches {
      let (partition, number) = (stretch.partition, stretch.partition.partition)
      guard selection.partitions?.contains(number) ?? true, let log = logs[partition] else { continue }
      var offsets = stretch.offsets
      if let wanted = selection.offsets {
        guard let range = wanted[number] else { continue }
        guard range.lowerBound >= log.lowerBound else { throw ReplayRefusal.gone(partition, wanted: range, oldest: log.lowerBound) }
        guard range.upperBound <= log.upperBound else { throw ReplayRefusal.notYetThere(partition, wanted: range, end: log.upperBound) }
        offsets = offsets.clamped(to: range)
      }
      let end = ends[TopicPartition(selection.destination, number)]?.upperBound ?? 0
      partitions.append(ReplayedPartition(number, offsets, end: end))
    }
    self.init(run: run, cluster: cluster, brokers: brokers, selection: selection, partitions: partitions)
  }

  private static func ends(of topic: String, needed: Int, _ admin: Admin) async throws -> [TopicPartition: Range<Int64>] {
    guard let description = try await admin.describeCluster().topics[topic] else { throw ReplayRefusal.noDestination(topic) }
    let partitions = description.partitions.map { TopicPartition(topic, $0.id) }
    guard partitions.count >= needed else { throw ReplayRefusal.tooFewPartitions(topic, count: partitions.count, needed: needed) }
    return try await admin.ends(of: partitions)
  }

  /// Checks whether the replay can continue.
  ///
  /// - Parameter skipsGone: whether to skip records that were deleted meanwhile.
  /// - Returns: the number of skipped records.
  package mutating func prepareToGoOn(_ admin: Admin, skipsGone: Bool) async throws -> Int64 {
    let (topic, destination) = (selection.topic, selection.destination)
    let cluster = try await admin.describeCluster()
    guard cluster.id ?? "" == brokers else { throw ReplayRefusal.otherCluster }
    _ = try await admin.describe(topic: topic)
    let numbers = partitions.map(\.partition)
    for name in Set([topic, destination]) {
      guard let count = cluster.topics[name]?.partitions.count else { throw ReplayRefusal.noDestination(name) }
      if let missing = numbers.first(where: { $0 >= count }) {
        throw ReplayRefusal.noPartition(TopicPartition(name, missing), count: count)
      }
    }
    let logs = try await admin.ends(of: numbers.map { TopicPartition(topic, $0) })
    let written = try await admin.ends(of: numbers.map { TopicPartition(destination, $0) })
    var leftOut: Int64 = 0
    for place in partitions.indices where !partitions[place].isComplete {
      let part = partitions[place]
      guard let log = logs[TopicPartition(topic, part.partition)] else { continue }
      guard part.offsets.upperBound <= log.upperBound else { throw ReplayRefusal.topicMadeAgain(topic) }
      let end = written[TopicPartition(destination, part.partition)]?.upperBound ?? 0
      guard part.written <= end else { throw ReplayRefusal.topicMadeAgain(destination) }
      guard log.lowerBound > part.done else { continue }
      let partition = TopicPartition(topic, part.partition)
      guard skipsGone else { throw ReplayRefusal.gone(partition, wanted: part.done..<part.offsets.upperBound, oldest: log.lowerBound) }
      leftOut += min(log.lowerBound, part.offsets.upperBound) - part.done
      partitions[place].leaveOut(below: log.lowerBound)
    }
    return leftOut
  }
}
