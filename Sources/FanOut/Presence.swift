/// Where a device is connected: the partition of `deliveries` that its lane reads, and its session's generation.
struct Presence: Equatable {
  static let byteCount = 12

  let partition: Int32
  /// Unique among all sessions that there ever were; never counted.
  let generation: UInt64

  init(partition: Int32, generation: UInt64) {
    self.partition = partition
    self.generation = generation
  }

  /// Reads the form that Redis keeps; nil for anything else.
  init?(_ bytes: [UInt8]) {
    guard bytes.count == Self.byteCount else { return nil }
    partition = Int32(truncatingIfNeeded: bytes[..<4].reduce(0) { $0 << 8 | Int($1) })
    generation = bytes[4...].reduce(0) { $0 << 8 | UInt64($1) }
  }

  /// The form that Redis keeps.
  var bytes: [UInt8] {
    withUnsafeBytes(of: partition.bigEndian, Array.init) + withUnsafeBytes(of: generation.bigEndian, Array.init)
  }
}
