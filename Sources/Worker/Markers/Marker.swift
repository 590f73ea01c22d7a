/// How far a partition is applied: below the offset every outcome is durable, in Redis and in Kafka.
public struct Marker: Equatable, Sendable {
  static let byteCount = 20
  /// Nothing is applied.
  public static let beginning = Marker(offset: 0, timestamp: -1)

  /// The offset.
  public var offset: Int64
  /// Of the record below the offset, by which a topic that was made anew is known; -1 where there is none.
  public var timestamp: Int64

  /// How often the topic was made anew: offsets of one era say nothing about those of another.
  public var era: UInt32

  /// A marker from its parts.
  public init(offset: Int64, timestamp: Int64, era: UInt32 = 0) {
    self.offset = offset
    self.timestamp = timestamp
    self.era = era
  }

  /// Reads the form that Redis keeps; nil for anything else.
  public init?(_ bytes: UnsafeRawBufferPointer) {
    guard bytes.count == Self.byteCount else { return nil }
    offset = Int64(bigEndian: bytes.loadUnaligned(as: Int64.self))
    timestamp = Int64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: Int64.self))
    era = UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: 16, as: UInt32.self))
  }

  /// The form that Redis keeps.
  public var bytes: [UInt8] {
    withUnsafeBytes(of: offset.bigEndian, Array.init) + withUnsafeBytes(of: timestamp.bigEndian, Array.init)
      + withUnsafeBytes(of: era.bigEndian, Array.init)
  }

  /// What the group keeps beside an offset of this era; nil for the first.
  public static func note(era: UInt32) -> String? { era > 0 ? "era \(era)" : nil }

  /// The era in such a note.
  public static func era(note: String) -> UInt32 { note.hasPrefix("era ") ? UInt32(note.dropFirst(4)) ?? 0 : 0 }

  /// Where reading begins: at the record below, whose timestamp tells whether this is still the same topic; nil for the oldest.
  public var readingOffset: Int64? { offset == 0 ? nil : timestamp < 0 ? offset : offset - 1 }
}

/// A marker that is to change: in the buckets where it stands as expected, and nowhere else.
public struct MarkerChange: Sendable {
  let field: String
  /// What the writer has written last, or has read; nil: nothing.
  let expected: Marker?
  let new: Marker

  /// A change of the field of this name.
  public init(field: String, expected: Marker?, new: Marker) { (self.field, self.expected, self.new) = (field, expected, new) }
}
