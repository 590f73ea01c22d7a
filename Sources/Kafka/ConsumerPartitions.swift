import CRdKafka

/// A consumer's partitions by index, and the index of a message's partition. A value.
struct ConsumerPartitions {
  enum State { case absent, offered, owned, revoking }

  struct Partition {
    let topicPartition: TopicPartition
    var state = State.absent
    var generation: UInt32 = 0
    var startOffset: Int64?
    var position = ReadPosition()
    var isPaused = false
    /// Whether it is not fetched, because the end of an unreadable batch is not known yet.
    var isSearched = false
    /// Whether it was read here until now, and is on offer again.
    var startsAgain = false
  }

  /// A topic whose librdkafka handle is kept, so its address in messages identifies it for the consumer's life.
  private struct Topic {
    let name: String
    let handle: OpaquePointer
    var indexes: [Int32] = []
  }

  private(set) var all: [Partition] = []
  private var byName: [TopicPartition: Int] = [:]
  private var topics: [Topic] = []
  private var lastTopic = 0

  subscript(index: Int) -> Partition {
    get { all[index] }
    set { all[index] = newValue }
    _modify { yield &all[index] }
  }

  /// The partition at an index; nil if there is none.
  func known(_ index: Int) -> Partition? { all.indices.contains(index) ? all[index] : nil }

  func index(of partition: TopicPartition) -> Int? { byName[partition] }

  func assigned(_ index: Int) -> AssignedPartition {
    let partition = all[index]
    return AssignedPartition(
      topicPartition: partition.topicPartition, index: index, generation: partition.generation, startOffset: partition.startOffset,
      startsAgain: partition.startsAgain)
  }

  /// Whether the offset belongs to the current assignment, or to the one that is being revoked.
  func isCurrent(_ commit: CommitOffset) -> Bool {
    all.indices.contains(commit.partition) && all[commit.partition].state != .absent
      && all[commit.partition].generation == commit.generation
  }

  /// The owned partitions with the append time of the last record that was given.
  var lastTimes: [(partition: AssignedPartition, milliseconds: Int64)] {
    ownedIndexes.compactMap { index in all[index].position.appendedAt.map { (assigned(index), $0) } }
  }

  /// Whether a partition's log is another than the one read in this assignment; see `ReadPosition`.
  mutating func isReplaced(_ partition: AssignedPartition, after milliseconds: Int64, firstLater offset: Int64) -> Bool {
    all[partition.index].state == .owned && all[partition.index].generation == partition.generation
      && all[partition.index].position.isReplaced(after: milliseconds, firstLater: offset)
  }

  var ownedIndexes: [Int] { all.indices.filter { all[$0].state == .owned } }

  /// Begins a new generation of the partition, owned and not paused.
  mutating func assign(_ partition: TopicPartition, startOffset: Int64?, client: OpaquePointer) -> Int {
    let index = byName[partition] ?? add(partition, client)
    var position = all[index].position
    position.begin()
    all[index] = Partition(
      topicPartition: partition, state: .owned, generation: all[index].generation &+ 1, startOffset: startOffset, position: position)
    return index
  }

  /// Begins a new generation of the partition, in which nothing is read before it is assigned.
  mutating func offer(_ partition: TopicPartition, startsAgain: Bool = false, client: OpaquePointer) -> Int {
    let index = assign(partition, startOffset: nil, client: client)
    all[index].state = .offered
    all[index].startsAgain = startsAgain
    return index
  }

  /// Withdraws an offer.
  mutating func withdraw(_ index: Int) {
    all[index].state = .absent
    all[index].generation &+= 1
  }

  /// Makes librdkafka fetch a partition from an offset on.
  func seek(_ index: Int, to offset: Int64) {
    let partition = all[index].topicPartition
    guard let topic = topics.first(where: { $0.name == partition.topic }) else { return }
    _ = rd_kafka_seek(topic.handle, partition.partition, offset, 0)
  }

  private mutating func add(_ partition: TopicPartition, _ client: OpaquePointer) -> Int {
    let index = all.count
    all.append(Partition(topicPartition: partition))
    byName[partition] = index
    var topic = topics.firstIndex { $0.name == partition.topic }
    if topic == nil, let handle = rd_kafka_topic_new(client, partition.topic, nil) {
      topic = topics.count
      topics.append(Topic(name: partition.topic, handle: handle))
    }
    guard let topic, partition.partition >= 0 else { return index }
    while topics[topic].indexes.count <= Int(partition.partition) { topics[topic].indexes.append(-1) }
    topics[topic].indexes[Int(partition.partition)] = Int32(index)
    return index
  }

  /// The index of a message's partition; -1 if it was never assigned.
  @inline(__always)
  mutating func index(topic handle: OpaquePointer?, partition: Int32) -> Int {
    if lastTopic >= topics.count || topics[lastTopic].handle != handle {
      guard let handle else { return -1 }
      let found = topics.firstIndex { $0.handle == handle } ?? topics.firstIndex { $0.name == String(cString: rd_kafka_topic_name(handle)) }
      guard let found else { return -1 }
      lastTopic = found
    }
    guard partition >= 0, Int(partition) < topics[lastTopic].indexes.count else { return -1 }
    return Int(topics[lastTopic].indexes[Int(partition)])
  }

  /// Releases the topics' handles. The consumer must call it before its end.
  mutating func releaseTopics() {
    for topic in topics { rd_kafka_topic_destroy(topic.handle) }
    topics = []
  }
}
