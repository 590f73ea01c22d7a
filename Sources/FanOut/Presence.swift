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

/// Whose a device is: what the field `u` of its hash says.
struct Owner: Equatable {
  static let byteCount = 24

  /// The stable hash of the user; 0 for nobody.
  var user: UInt64
  /// Since when, in milliseconds.
  var since: UInt64
  /// The stable hash of the application.
  var application: UInt64

  init(user: UInt64, since: UInt64, application: UInt64) {
    self.user = user
    self.since = since
    self.application = application
  }

  /// Reads the form that Redis keeps; nil for anything else.
  init?(_ bytes: [UInt8]) {
    guard bytes.count == Self.byteCount else { return nil }
    func number(_ start: Int) -> UInt64 { bytes[start..<start + 8].reduce(0) { $0 << 8 | UInt64($1) } }
    self.init(user: number(0), since: number(8), application: number(16))
  }

  /// The form that Redis keeps.
  var bytes: [UInt8] { [user, since, application].flatMap { withUnsafeBytes(of: $0.bigEndian, Array.init) } }
}
