/// The position of a record in a known topic: `PARTITION:OFFSET`, as people type it.
public struct RecordPlace: Sendable, Hashable, Comparable, CustomStringConvertible {
  /// The partition.
  public let partition: Int32
  /// The offset within the partition.
  public let offset: Int64

  /// Creates a position from its parts.
  public init(partition: Int32, offset: Int64) {
    self.partition = partition
    self.offset = offset
  }

  /// Reads two decimal numbers with a colon between them; `nil` for other texts.
  public init?(_ text: String) {
    let parts = text.split(separator: ":", omittingEmptySubsequences: false)
    guard parts.count == 2, parts.allSatisfy({ $0.utf8.allSatisfy { (0x30...0x39).contains($0) } }), let partition = Int32(parts[0]),
      let offset = Int64(parts[1])
    else { return nil }
    self.init(partition: partition, offset: offset)
  }

  /// The text.
  public var description: String { "\(partition):\(offset)" }

  /// Compares the partitions, then the offsets.
  public static func < (left: RecordPlace, right: RecordPlace) -> Bool {
    (left.partition, left.offset) < (right.partition, right.offset)
  }
}
