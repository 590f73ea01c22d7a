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

extension RequestRecord {
  /// Makes a request's record from a consumed record, which is read in place.
  ///
  /// - Parameter position: its place, if that is another than the consumed record's, as for a dead letter.
  public init(_ record: RecordView, topic: UnsafeRawBufferPointer, position: SourcePosition? = nil) {
    var headers = RequestHeaders()
    record.forEachHeader { name, value in
      if let value { headers.take(name: name, value: value) }
    }
    self.init(
      key: record.key ?? .empty, value: record.value ?? .empty, headers: headers, topic: topic, position: position ?? SourcePosition(record)
    )
  }
}
