/// The position of a request's record in its topic, with its timestamp.
public struct SourcePosition: Hashable, Sendable {
  /// The partition.
  public var partition: Int32
  /// The offset within the partition.
  public var offset: Int64
  /// The record's time, in milliseconds since 1970.
  public var timestamp: Int64

  /// Creates a position. -1 means unknown to Kafka and counts as 0.
  ///
  /// A time after the year 9999 counts as the end of that year.
  public init(partition: Int32, offset: Int64, timestamp: Int64) {
    self.partition = max(partition, 0)
    self.offset = max(offset, 0)
    self.timestamp = Timestamp.bounded(timestamp)
  }
}

/// The position of a request's record, with its topic.
public struct SourceCoordinates: Hashable, Sendable {
  /// The topic.
  public var topic: String
  /// The partition, the offset and the timestamp.
  public var position: SourcePosition

  /// Creates the coordinates of a record.
  public init(topic: String, position: SourcePosition) {
    self.topic = topic
    self.position = position
  }

  /// Creates the coordinates of a record.
  public init(topic: String, partition: Int32, offset: Int64, timestamp: Int64) {
    self.init(topic: topic, position: SourcePosition(partition: partition, offset: offset, timestamp: timestamp))
  }
}

/// The place of a request in time: timestamp, partition and offset of its source record.
///
/// Revisions that devices keep have one order, ``isKeptBefore(_:)``: that of their bytes, and of their text. ``judging(_:isSameRequest:isRedriven:)``
/// decides which revision a device keeps for a published request.
public struct Revision: Hashable, Sendable, CustomStringConvertible {
  /// The number of bytes of the binary form: 8, 4 and 8, most significant first.
  public static var byteCount: Int { 20 }
  /// The number of lower-case hexadecimal digits of the text.
  public static var textCount: Int { 40 }

  /// Milliseconds since 1970.
  public let timestamp: UInt64
  /// The partition in the lower 16 bits, and the incarnation of the topic above.
  public let partition: UInt32
  /// The offset.
  public let offset: UInt64

  /// Creates a revision from its parts.
  public init(timestamp: UInt64, partition: UInt32, offset: UInt64) {
    self.timestamp = timestamp
    self.partition = partition
    self.offset = offset
  }

  /// Returns the revision in an incarnation of the topic.
  ///
  /// Offsets begin again in each incarnation, so revisions of two incarnations are compared by time only.
  public func inIncarnation(_ incarnation: UInt32) -> Revision {
    Revision(timestamp: timestamp, partition: incarnation << 16 | partition & 0xFFFF, offset: offset)
  }

  /// The partition of the source record, without the incarnation.
  public var sourcePartition: UInt32 { partition & 0xFFFF }

  /// Creates the revision of the request at a position.
  public init(_ source: SourcePosition) {
    self.init(
      timestamp: UInt64(clamping: source.timestamp), partition: UInt32(clamping: source.partition), offset: UInt64(clamping: source.offset))
  }

  /// Creates a revision from twenty bytes; nil for another number of bytes.
  public init?(bytes: UnsafeRawBufferPointer) {
    var reader = ByteReader(bytes)
    guard bytes.count == Self.byteCount, let timestamp = reader.integer(UInt64.self), let partition = reader.integer(UInt32.self),
      let offset = reader.integer(UInt64.self)
    else { return nil }
    self.init(timestamp: timestamp, partition: partition, offset: offset)
  }

  /// Reads a revision of forty lower-case hexadecimal digits; nil for other texts.
  public init?(text: UnsafeRawBufferPointer) {
    guard text.count == Self.textCount, let timestamp = Hexadecimal.read(UInt64.self, from: text, at: 0),
      let partition = Hexadecimal.read(UInt32.self, from: text, at: 16), let offset = Hexadecimal.read(UInt64.self, from: text, at: 24)
    else { return nil }
    self.init(timestamp: timestamp, partition: partition, offset: offset)
  }

  /// Reads a revision from its text.
  public init?(_ text: String) {
    var text = text
    guard let revision = text.withUTF8({ Revision(text: UnsafeRawBufferPointer($0)) }) else { return nil }
    self = revision
  }

  /// Appends the twenty bytes.
  public func append(to buffer: inout ByteBuffer) {
    buffer.append(timestamp)
    buffer.append(partition)
    buffer.append(offset)
  }

  /// Passes the twenty bytes to `body`. They are valid during the call.
  public func withBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
    try withUnsafeTemporaryAllocation(byteCount: Self.byteCount, alignment: 8) { output in
      output.storeBytes(of: timestamp.bigEndian, toByteOffset: 0, as: UInt64.self)
      output.storeBytes(of: partition.bigEndian, toByteOffset: 8, as: UInt32.self)
      output.storeBytes(of: offset.bigEndian, toByteOffset: 12, as: UInt64.self)
      return try body(UnsafeRawBufferPointer(rebasing: output[0..<Self.byteCount]))
    }
  }

  /// Passes the forty digits to `body`. They are valid during the call.
  public func withText<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
    try withUnsafeTemporaryAllocation(byteCount: Self.textCount, alignment: 8) { output in
      Hexadecimal.write(timestamp, to: output, at: 0)
      Hexadecimal.write(partition, to: output, at: 16)
      Hexadecimal.write(offset, to: output, at: 24)
      return try body(UnsafeRawBufferPointer(rebasing: output[0..<Self.textCount]))
    }
  }

  /// The forty digits.
  public var description: String { withText { $0.text } }

  /// Whether this revision, which a device keeps, is older than another that it keeps: byte by byte.
  ///
  /// Published positions have no such order, so revisions are not `Comparable`. For those of different partitions the rule of newness
  /// compares likewise.
  public func isKeptBefore(_ other: Revision) -> Bool {
    (timestamp, partition, offset) < (other.timestamp, other.partition, other.offset)
  }
}
