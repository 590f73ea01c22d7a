import CRdKafka

/// Consumed records. Their keys, values and headers stay in place while the batch is in use.
///
/// It may be kept until Redis or Kafka has answered. A consumer's `close` waits for batches in use, so
/// release each in bounded time.
public final class RecordBatch {
  struct Entry {
    var message: UnsafeMutablePointer<rd_kafka_message_t>
    var partition: Int32
    var generation: UInt32
  }

  private let client: ClientHandle
  private let entries: UnsafeMutablePointer<Entry>
  /// The number of records; at least one.
  public let count: Int

  /// Takes ownership of the messages.
  init(client: ClientHandle, moving source: UnsafeMutablePointer<Entry>, count: Int) {
    self.client = client
    self.count = count
    entries = .allocate(capacity: count)
    entries.moveInitialize(from: source, count: count)
    client.hold()
  }

  /// The records' indexes.
  public var indices: Range<Int> { 0..<count }

  /// A record, valid while the batch is in use.
  public subscript(index: Int) -> RecordView {
    precondition(index >= 0 && index < count, "a batch has no record at this place")
    let entry = entries[index]
    return RecordView(message: entry.message, partitionIndex: Int(entry.partition), generation: entry.generation)
  }

  deinit {
    for index in 0..<count { rd_kafka_message_destroy(entries[index].message) }
    entries.deallocate()
    client.release()
  }
}

/// One record of a batch, read in place. Every pointer is valid while the batch is in use.
public struct RecordView {
  let message: UnsafeMutablePointer<rd_kafka_message_t>
  /// The partition's index, as its assignment gave it: small and dense, for arrays.
  public let partitionIndex: Int
  /// The generation of the assignment that read it. Later assignments of the partition ignore it.
  public let generation: UInt32

  /// The topic's name. It makes a string, so do not use it for every record.
  public var topic: String { String(cString: rd_kafka_topic_name(message.pointee.rkt)) }
  /// The partition's number.
  public var partition: Int32 { message.pointee.partition }
  /// The record's offset.
  public var offset: Int64 { message.pointee.offset }

  /// Milliseconds since 1970 by the producer's or the broker's clock, as the topic is set; -1 if the record has none.
  ///
  /// A producer may write any number. A time outside of 1970 to 9999 counts as -1 or as the end of 9999, so sums do not overflow.
  public var timestamp: Int64 {
    var type = RD_KAFKA_TIMESTAMP_NOT_AVAILABLE
    return min(max(rd_kafka_message_timestamp(message, &type), -1), Self.latestTimestamp)
  }

  private static var latestTimestamp: Int64 { 253_402_300_799_999 }

  /// Whether the broker's clock gave the timestamp (`message.timestamp.type=LogAppendTime`).
  public var isTimestampOfBroker: Bool {
    var type = RD_KAFKA_TIMESTAMP_NOT_AVAILABLE
    _ = rd_kafka_message_timestamp(message, &type)
    return type == RD_KAFKA_TIMESTAMP_LOG_APPEND_TIME
  }

  /// The key; nil if the record has none. An empty key is not nil.
  public var key: UnsafeRawBufferPointer? { message.pointee.keyBytes }

  /// The value; nil for a tombstone.
  public var value: UnsafeRawBufferPointer? { message.pointee.valueBytes }

  /// Calls `body` with each header in order. Its zero-terminated name, and its value, nil if it has none.
  @inline(__always)
  public func forEachHeader(_ body: (UnsafePointer<CChar>, UnsafeRawBufferPointer?) -> Void) {
    var headers: OpaquePointer?
    guard rd_kafka_message_headers(message, &headers) == RD_KAFKA_RESP_ERR_NO_ERROR, let headers else { return }
    var index = 0
    var name: UnsafePointer<CChar>?
    var value: UnsafeRawPointer?
    var size = 0
    while rd_kafka_header_get_all(headers, index, &name, &value, &size) == RD_KAFKA_RESP_ERR_NO_ERROR {
      if let name { body(name, value.map { UnsafeRawBufferPointer(start: $0, count: size) }) }
      index += 1
    }
  }

  /// The last header of this name; nil if there is none or it has no value.
  public func header(_ wanted: String) -> UnsafeRawBufferPointer? {
    var headers: OpaquePointer?
    guard rd_kafka_message_headers(message, &headers) == RD_KAFKA_RESP_ERR_NO_ERROR, let headers else { return nil }
    var value: UnsafeRawPointer?
    var size = 0
    guard rd_kafka_header_get_last(headers, wanted, &value, &size) == RD_KAFKA_RESP_ERR_NO_ERROR else { return nil }
    return value.map { UnsafeRawBufferPointer(start: $0, count: size) }
  }
}

extension rd_kafka_message_t {
  @inline(__always)
  var keyBytes: UnsafeRawBufferPointer? { key.map { UnsafeRawBufferPointer(start: $0, count: key_len) } }

  @inline(__always)
  var valueBytes: UnsafeRawBufferPointer? { payload.map { UnsafeRawBufferPointer(start: $0, count: len) } }
}
