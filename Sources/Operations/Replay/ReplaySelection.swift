public import Kafka

/// What somebody wants to be replayed.
public struct ReplaySelection: Sendable {
  /// The topic that is read.
  public var topic: String
  /// The topic that is written.
  public var destination: String
  /// The partitions; nil: all.
  public var partitions: Set<Int32>?
  /// Of these partitions these offsets, and no other partition; nil: all that there are.
  public var offsets: [Int32: Range<Int64>]?
  /// When the records were published.
  public var published = TimeRange()
  /// Which requests are meant.
  public var filter = ReplayFilter()
  /// Only those that have not come to their end.
  public var isOfUnfinished = false
  /// They come as requests of their own.
  public var isNew = false

  /// All of a topic.
  public init(topic: String, destination: String) { (self.topic, self.destination) = (topic, destination) }
}

/// Why nothing can be replayed as it is wanted, and what can be done.
public enum ReplayRefusal: Error, Sendable, Equatable {
  /// There is no such partition; so many there are.
  case noPartition(TopicPartition, count: Int)
  /// The wanted offsets begin before the oldest that is there.
  case gone(TopicPartition, wanted: Range<Int64>, oldest: Int64)
  /// The wanted offsets end behind the newest.
  case notYetThere(TopicPartition, wanted: Range<Int64>, end: Int64)
  /// Another cluster has begun it.
  case otherCluster
  /// The topic was deleted and made again since it was begun.
  case topicMadeAgain(String)
  /// The topic that is to be written is not there.
  case noDestination(String)
  /// The topic that is written has fewer partitions than the one that is read.
  case tooFewPartitions(String, count: Int, needed: Int)
}

extension ReplayPlan {
  /// A replay of what is there now: its ends are those of this moment.
  ///
  /// - Parameter run: the replay's name.
  public init(_ selection: ReplaySelection, run: String, cluster: String, _ admin: Admin) async throws {
    let brokers = try await admin.describeCluster().id ?? ""
    let stretches = try await admin.stretches(of: selection.topic, selection.published)
    let count = stretches.count
    for number in (selection.partitions ?? []).union((selection.offsets ?? [:]).keys) where !(0..<count).contains(Int(number)) {
      throw ReplayRefusal.noPartition(TopicPartition(selection.topic, number), count: count)
    }
    let all = stretches.map(\.partition)
    let logs = try await admin.ends(of: all)
    let ends =
      selection.topic == selection.destination
      ? logs : try await Self.ends(of: selection.destination, needed: count, admin)
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
    self.init(
      run: run, cluster: cluster, brokers: brokers, topic: selection.topic, destination: selection.destination, filter: selection.filter,
      published: selection.published, isOfUnfinished: selection.isOfUnfinished, isNew: selection.isNew, partitions: partitions)
  }

  private static func ends(of topic: String, needed: Int, _ admin: Admin) async throws -> [TopicPartition: Range<Int64>] {
    guard let description = try await admin.describeCluster().topics[topic] else { throw ReplayRefusal.noDestination(topic) }
    let partitions = description.partitions.map { TopicPartition(topic, $0.id) }
    guard partitions.count >= needed else { throw ReplayRefusal.tooFewPartitions(topic, count: partitions.count, needed: needed) }
    return try await admin.ends(of: partitions)
  }

  /// Finds out whether it can go on.
  ///
  /// - Parameter skipsGone: what is gone meanwhile is left out.
  /// - Returns: records that are left out.
  public mutating func prepareToGoOn(_ admin: Admin, skipsGone: Bool) async throws -> Int64 {
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
