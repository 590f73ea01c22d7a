import CRdKafka
import Glibc

/// A partition by its name.
public struct TopicPartition: Sendable, Hashable, Comparable, CustomStringConvertible {
  /// The topic.
  public var topic: String
  /// The partition's number, from 0.
  public var partition: Int32

  /// Names a partition.
  public init(_ topic: String, _ partition: Int32) {
    self.topic = topic
    self.partition = partition
  }

  /// By topic, then by number.
  public static func < (left: Self, right: Self) -> Bool {
    left.topic == right.topic ? left.partition < right.partition : left.topic < right.topic
  }

  /// `topic/3`.
  public var description: String { "\(topic)/\(partition)" }

  /// The partition of a key in a topic with so many, as Java's clients and the workers' producers choose it. Other clients use others.
  public static func number(ofKey key: String, of count: Int) -> Int32 {
    var key = key
    return key.withUTF8 { rd_kafka_msg_partitioner_murmur2(nil, $0.baseAddress, $0.count, Int32(clamping: max(1, count)), nil, nil) }
  }
}

/// Where reading of a partition begins.
public enum StartPosition: Sendable, Hashable {
  /// At this offset, or the next that exists.
  case offset(Int64)
  /// At the oldest record.
  case earliest
  /// After the newest record at the time of the assignment. The offset is known before the assignment returns.
  case latest
}

/// One librdkafka list of partitions, freed with its owner.
final class PartitionList {
  let pointer: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>

  init(capacity: Int) { pointer = rd_kafka_topic_partition_list_new(Int32(capacity)) }

  /// Takes ownership of a list from librdkafka.
  init(owning pointer: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>) { self.pointer = pointer }

  convenience init(_ partitions: some Collection<TopicPartition>) {
    self.init(capacity: partitions.count)
    for partition in partitions { add(partition) }
  }

  func add(_ partition: TopicPartition, offset: Int64? = nil, note: String? = nil) {
    guard let element = rd_kafka_topic_partition_list_add(pointer, partition.topic, partition.partition), let offset else { return }
    element.pointee.offset = offset
    guard let note, let copy = strdup(note) else { return }
    // The list frees it.
    element.pointee.metadata = UnsafeMutableRawPointer(copy)
    element.pointee.metadata_size = strlen(copy)
  }

  var elements: UnsafeMutableBufferPointer<rd_kafka_topic_partition_t> {
    UnsafeMutableBufferPointer(start: pointer.pointee.elems, count: Int(pointer.pointee.cnt))
  }

  var partitions: [TopicPartition] { elements.map(\.topicPartition) }

  deinit { rd_kafka_topic_partition_list_destroy(pointer) }
}

extension rd_kafka_topic_partition_t {
  var topicPartition: TopicPartition { TopicPartition(String(cString: topic), partition) }

  /// The note that was committed beside the offset; empty if there is none.
  var note: String {
    String(decoding: UnsafeRawBufferPointer(start: metadata, count: metadata == nil ? 0 : metadata_size), as: UTF8.self)
  }
}
