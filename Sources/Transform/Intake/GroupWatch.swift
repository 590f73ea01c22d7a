import EventLoop
import Kafka
import Worker

/// Detects partitions of requests without an owner, while the lane has no partition.
///
/// A group can assign nothing to anybody, and stay so. The member that assigns the partitions asks a broker that does not know a topic yet
/// which is being made again. When the broker knows it, librdkafka finds the topic as it was before it joined, and does not join again.
/// Only the brokers' list of members shows that.
final class GroupWatch {
  private let topic: String
  private let group: String
  private let timer: Timer
  private var unowned = UnownedPartitions()
  private var consumer: Consumer?
  private var isAsking = false
  /// Calls `ask` in a task of the lane.
  weak var owner: TransformCore?

  /// How often a lane without a partition asks. Forming a group, and moving partitions between members, take less time.
  private static let questionMilliseconds = 10_000

  init(on loop: EventLoop, _ settings: TransformSettings) {
    (topic, group) = (settings.topics.requests, settings.group)
    timer = Timer(on: loop)
    timer.handler = { [unowned self] in tick() }
  }

  /// A consumer has joined the group.
  func attach(_ consumer: Consumer) {
    self.consumer = consumer
    timer.start(after: Self.questionMilliseconds, repeating: Self.questionMilliseconds)
  }

  /// The consumer leaves the group.
  func detach() {
    timer.stop()
    consumer = nil
    unowned = UnownedPartitions()
  }

  /// Ends the questions.
  func close() {
    detach()
    timer.close()
  }

  private func tick() {
    guard let consumer, consumer.assignment.isEmpty, consumer.offers.isEmpty else { return unowned = UnownedPartitions() }
    guard !isAsking else { return }
    isAsking = true
    owner?.run(.askForMembers)
  }

  /// Returns the partitions that have no owner, now and at the question before: joining again helps then. Brokers that do not answer are
  /// asked again. The embedded broker names no members, but its topics are never made again.
  func ask(_ admin: Admin) async -> [TopicPartition] {
    defer { isAsking = false }
    let asked = consumer
    guard let cluster = try? await admin.describeCluster(), !cluster.isEmbedded,
      let found = try? await admin.members(of: group), let consumer, consumer === asked, consumer.assignment.isEmpty,
      consumer.offers.isEmpty
    else { return [] }
    let partitions = cluster.topics[topic]?.partitions.map { TopicPartition(topic, $0.id) } ?? []
    return unowned.lasting(among: partitions, in: found)
  }
}

/// The partitions that stay without an owner. A value.
struct UnownedPartitions {
  private var before: Set<TopicPartition> = []

  /// The partitions that no member of a stable group owns, now and at the question before.
  mutating func lasting(among partitions: [TopicPartition], in group: GroupMembers) -> [TopicPartition] {
    guard group.state == "Stable" else {
      before = []
      return []
    }
    let now = Set(partitions).subtracting(group.members.flatMap(\.partitions))
    defer { before = now }
    return now.intersection(before).sorted { $0.partition < $1.partition }
  }
}
