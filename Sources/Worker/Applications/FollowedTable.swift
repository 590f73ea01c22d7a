public import Kafka

/// A compacted topic that a lane reads whole, before it takes work, and follows: each of its records tells all of its key.
public protocol FollowedTable: AnyObject {
  /// The topic, of which all partitions are read.
  var topic: String { get }

  /// Takes a record, those of a key in their order; answers why it counts for nothing, or nil where it counts.
  func take(_ record: RecordView) -> String?

  /// Forgets all records: the topic was made again.
  func forget()
}
