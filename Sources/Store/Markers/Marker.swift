/// How far a partition is applied: below the offset every outcome is durable, in Redis and in Kafka.
///
/// | bytes | what |
/// |---|---|
/// | 8 | the offset |
/// | 8 | the timestamp of the record below it |
/// | 4 | the topic's incarnation |
public struct Marker: Equatable, Sendable {
  static let byteCount = 20
  /// Nothing is applied.
  public static let beginning = Marker(offset: 0, timestamp: -1)

  /// The offset.
  public var offset: Int64
  /// Of the record below the offset, by which a topic that was made again is known; -1 where there is none.
  public var timestamp: Int64
  /// How often the topic was deleted and made again: offsets of one incarnation say nothing about those of another.
  public var incarnation: UInt32

  /// A marker from its parts.
  public init(offset: Int64, timestamp: Int64, incarnation: UInt32 = 0) {
    self.offset = offset
    self.timestamp = timestamp
    self.incarnation = incarnation
  }

  /// No partition comes so far, and what is added to it stays within 64 bits.
  private static let maximumOffset: Int64 = 1 << 62

  /// Reads the form that Redis keeps; nil for anything else, and for numbers that no worker writes.
  init?(_ bytes: UnsafeRawBufferPointer) {
    guard bytes.count == Self.byteCount else { return nil }
    offset = Int64(bigEndian: bytes.loadUnaligned(as: Int64.self))
    timestamp = Int64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: Int64.self))
    incarnation = UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: 16, as: UInt32.self))
    guard (0...Self.maximumOffset).contains(offset), incarnation < .max else { return nil }
  }

  /// The form that Redis keeps.
  var bytes: [UInt8] {
    withUnsafeBytes(of: offset.bigEndian, Array.init) + withUnsafeBytes(of: timestamp.bigEndian, Array.init)
      + withUnsafeBytes(of: incarnation.bigEndian, Array.init)
  }

  /// What the group keeps beside an offset of this incarnation; nil for the first.
  public static func note(incarnation: UInt32) -> String? { incarnation > 0 ? "incarnation \(incarnation)" : nil }

  /// The incarnation in such a note.
  public static func incarnation(note: String) -> UInt32 {
    note.hasPrefix("incarnation ") ? UInt32(note.dropFirst("incarnation ".count)) ?? 0 : 0
  }

  /// Where reading begins: at the record below, whose timestamp tells whether this is still the same topic; nil for the oldest.
  public var readingOffset: Int64? { offset == 0 ? nil : timestamp < 0 ? offset : offset - 1 }
}

/// A partition that has markers.
public enum MarkedPartition: Hashable, Sendable {
  /// Of the requests.
  case requests(Int32)
  /// Of `devices`.
  case devices(Int32)

  /// The field of its markers, and what its tries are counted under.
  var field: String {
    switch self {
    case .requests(let partition): "q\(partition)"
    case .devices(let partition): "d\(partition)"
    }
  }
}

/// A marker that is to change: in the buckets where it stands as expected, and nowhere else.
public struct MarkerChange: Sendable {
  let partition: MarkedPartition
  /// What the writer has written last, or has read; nil: nothing.
  let expected: Marker?
  let new: Marker

  /// A change of the markers of a partition.
  public init(_ partition: MarkedPartition, expected: Marker?, new: Marker) {
    (self.partition, self.expected, self.new) = (partition, expected, new)
  }
}
