import EventLoop
import Kafka
import Worker

/// Looks whether partitions of requests are without an owner while the lane has none to work on. Loop-confined.
///
/// A group can give nobody anything and stay like that: the member that shares out the partitions asks a broker for them, which does not know
/// a topic that is being made again; and when it knows it, librdkafka finds the topic as it was before it joined, and joins no more. What was
/// given to whom is only seen from outside.
final class GroupWatch {
  private let topic: String
  private let group: String
  private let timer: Timer
  private var unowned = UnownedPartitions()
  private var consumer: Consumer?
  private var isAsking = false
  /// Has `ask` called.
  weak var owner: (any TransformTaskRunner)?

  /// How often a lane without a partition asks. A group that forms, and a member that gives up partitions for another, take less.
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

  /// Nothing is asked any more.
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

  /// The partitions that nobody has, now and when it was last asked, so that joining again is what helps. Brokers that do not answer are asked
  /// again; the embedded one, whose topics are never made again, tells no members.
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

/// Which partitions stay without an owner. A value.
struct UnownedPartitions {
  private var before: Set<TopicPartition> = []

  /// Those of a topic's partitions that no member has in a group that is not forming, and that none had at the question before.
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
