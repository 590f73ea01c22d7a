public import Kafka

/// Consecutive records of one partition.
public struct TopicStretch: Sendable, Hashable {
  /// The partition.
  public var partition: TopicPartition
  /// Its offsets; some may have no record.
  public var offsets: Range<Int64>

  /// Makes a stretch. If it ends before it begins, it is empty.
  public init(_ partition: TopicPartition, _ from: Int64, _ to: Int64) {
    self.partition = partition
    offsets = from..<max(from, to)
  }
}
