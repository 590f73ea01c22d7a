import Notifications

/// How far a partition is applied. Below the offset every outcome is durable in Redis and in Kafka.
///
/// | bytes | what |
/// |---|---|
/// | 8 | the offset |
/// | 8 | the timestamp of the record below it |
/// | 4 | the topic's incarnation |
public struct Marker: Equatable, Sendable {
  static let byteCount = 20
  /// Nothing is applied.
  static let beginning = Marker(offset: 0, timestamp: -1)

  /// The offset.
  public var offset: Int64
  /// The timestamp of the record below the offset, which shows that a topic was made again; -1 if there is none.
  public var timestamp: Int64
  /// How often the topic was deleted and made again. Offsets of different incarnations are not comparable.
  public var incarnation: UInt32

  /// A marker of its parts.
  public init(offset: Int64, timestamp: Int64, incarnation: UInt32 = 0) {
    self.offset = offset
    self.timestamp = timestamp
    self.incarnation = incarnation
  }

  /// No partition reaches it, and sums with it stay within 64 bits.
  private static let maximumOffset: Int64 = 1 << 62

  /// Reads the bytes that Redis keeps; nil for anything else, and for numbers that no worker writes.
  init?(_ bytes: UnsafeRawBufferPointer) {
    guard bytes.count == Self.byteCount else { return nil }
    offset = Int64(bigEndian: bytes.loadUnaligned(as: Int64.self))
    timestamp = Int64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: Int64.self))
    incarnation = UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: 16, as: UInt32.self))
    guard (0...Self.maximumOffset).contains(offset), incarnation < .max else { return nil }
  }

  /// The bytes that Redis keeps.
  var bytes: [UInt8] {
    withUnsafeBytes(of: offset.bigEndian, Array.init) + withUnsafeBytes(of: timestamp.bigEndian, Array.init)
      + withUnsafeBytes(of: incarnation.bigEndian, Array.init)
  }

  /// The note beside a committed offset of this incarnation; nil for the first incarnation.
  public static func note(incarnation: UInt32) -> String? { incarnation > 0 ? "incarnation \(incarnation)" : nil }

  /// The incarnation in such a note.
  public static func incarnation(note: String) -> UInt32 {
    note.hasPrefix("incarnation ") ? UInt32(note.dropFirst("incarnation ".count)) ?? 0 : 0
  }

  /// Where reading begins; nil for the oldest record. The record below the marker shows by its timestamp whether the topic is still the
  /// same.
  public var readingOffset: Int64? { offset == 0 ? nil : timestamp < 0 ? offset : offset - 1 }
}

/// A partition that has markers.
public enum MarkedPartition: Hashable, Sendable {
  /// Of the requests.
  case requests(Int32)
  /// Of `devices`.
  case devices(Int32)
  /// Of the requests, but for those that wait for a schedule in a newer layout than this program reads.
  case readableRequests(Int32)

  /// The field of its markers, and the beginning of its fields in the crash-loop counts.
  var field: String {
    switch self {
    case .requests(let partition): "q\(partition)"
    case .devices(let partition): "d\(partition)"
    // A program that reads a newer layout may apply them, so it has a field of its own.
    case .readableRequests(let partition): "q\(partition)/\(Layout.schedule.newest)"
    }
  }
}

/// A change of a marker, in the buckets where it still has the expected value if one is expected.
public struct MarkerChange: Sendable {
  let partition: MarkedPartition
  /// What the writer wrote or read last; nil for a missing marker.
  let expected: Marker?
  let new: Marker
  /// Whether the marker is set whatever stands there.
  let isForced: Bool

  /// A change of a partition's markers.
  public init(_ partition: MarkedPartition, expected: Marker?, new: Marker) {
    (self.partition, self.expected, self.new, isForced) = (partition, expected, new, false)
  }

  /// A change whatever stands there. What any other worker has written there was true, too.
  public init(_ partition: MarkedPartition, forcing new: Marker) {
    (self.partition, expected, self.new, isForced) = (partition, nil, new, true)
  }
}
