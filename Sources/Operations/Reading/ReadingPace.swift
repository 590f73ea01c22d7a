import Kafka

/// Keeps partitions that are read side by side in step: asked after each batch which of them shall wait for others.
///
/// A pause throws away what librdkafka has fetched ahead, so a partition should wait from a high mark on and read on from a low one.
protocol ReadingPace: AnyObject {
  /// Nothing more of a partition comes.
  func ended(_ partition: TopicPartition)
  /// Whether a partition shall not be read on for now. Never all that are left, or reading ends with an error.
  func waits(_ partition: TopicPartition) -> Bool
  /// Whether nothing shall be read for now, of any partition: what was fetched stays. Asked after each batch, and while it is so every few
  /// milliseconds.
  var isHeld: Bool { get }
}

extension ReadingPace {
  var isHeld: Bool { false }
}
