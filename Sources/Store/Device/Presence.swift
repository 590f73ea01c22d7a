/// Where a device is connected: the field `p` of its hash.
public struct Presence: Equatable, Sendable {
  static let byteCount = 12

  /// The partition of `deliveries` that its lane reads.
  public let partition: Int32
  /// The session's generation: a random number, unique among all sessions.
  public let generation: UInt64

  /// A presence of its parts.
  public init(partition: Int32, generation: UInt64) {
    self.partition = partition
    self.generation = generation
  }

  /// Reads the bytes that Redis keeps; nil for anything else.
  init?(_ bytes: UnsafeRawBufferPointer) {
    guard bytes.count == Self.byteCount else { return nil }
    partition = Int32(bigEndian: bytes.loadUnaligned(as: Int32.self))
    generation = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 4, as: UInt64.self))
  }

  /// Reads a copy of these bytes.
  init?(_ bytes: [UInt8]) {
    guard let presence = bytes.withUnsafeBytes({ Presence($0) }) else { return nil }
    self = presence
  }

  /// The bytes that Redis keeps.
  var bytes: [UInt8] {
    withUnsafeBytes(of: partition.bigEndian, Array.init) + withUnsafeBytes(of: generation.bigEndian, Array.init)
  }
}
