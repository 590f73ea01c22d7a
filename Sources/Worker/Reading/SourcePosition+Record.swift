public import Kafka
public import Notifications

extension SourcePosition {
  /// The position of a record.
  public init(_ record: RecordView) { self.init(partition: record.partition, offset: record.offset, timestamp: record.timestamp) }
}

extension SourceCoordinates {
  /// The coordinates of a record.
  public init(_ record: RecordView) { self.init(topic: record.topic, position: SourcePosition(record)) }
}
