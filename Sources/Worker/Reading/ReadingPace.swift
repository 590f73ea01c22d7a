public import Kafka

/// Keeps partitions in step that are read side by side. The reader asks it after each batch.
///
/// A pause drops prefetched records. So use a high mark to wait and a low mark to continue.
public protocol ReadingPace: AnyObject {
  /// Notes that a partition is read to its end.
  func ended(_ partition: TopicPartition)
  /// Whether a partition must wait. If all unfinished ones wait, reading ends with an error.
  func waits(_ partition: TopicPartition) -> Bool
  /// Whether reading stops for all partitions. Prefetched records stay. The reader asks after each batch, and then every few milliseconds.
  var isHeld: Bool { get }
}

extension ReadingPace {
  /// Nothing is held.
  public var isHeld: Bool { false }
}
