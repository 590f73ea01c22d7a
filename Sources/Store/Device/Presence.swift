/// Where a device is connected: what the field `p` of its hash says.
public struct Presence: Equatable, Sendable {
  static let byteCount = 12

  /// The partition of `deliveries` that its lane reads.
  public let partition: Int32
  /// The session's: unique among all sessions that there ever were; never counted.
  public let generation: UInt64

  /// A presence from its parts.
  public init(partition: Int32, generation: UInt64) {
    self.partition = partition
    self.generation = generation
  }

  /// Reads the form that Redis keeps; nil for anything else.
  init?(_ bytes: UnsafeRawBufferPointer) {
    guard bytes.count == Self.byteCount else { return nil }
    partition = Int32(bigEndian: bytes.loadUnaligned(as: Int32.self))
    generation = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 4, as: UInt64.self))
  }

  /// The same of a copy.
  init?(_ bytes: [UInt8]) {
    guard let presence = bytes.withUnsafeBytes({ Presence($0) }) else { return nil }
    self = presence
  }

  /// The form that Redis keeps.
  var bytes: [UInt8] {
    withUnsafeBytes(of: partition.bigEndian, Array.init) + withUnsafeBytes(of: generation.bigEndian, Array.init)
  }
}
