/// What the keys of encrypted content are derived from (the input keying material of RFC 8188). No text or dump shows it.
public struct ContentKey: Sendable, CustomStringConvertible, CustomReflectable {
  /// How many bytes it has: as many as an AES key at least, and more than a hash's block are of no use.
  public static var lengths: ClosedRange<Int> { 16...64 }

  let bytes: [UInt8]

  /// A key of as many bytes as `lengths` allows, which must be hard to guess; nil for fewer or more.
  public init?(_ bytes: [UInt8]) {
    guard Self.lengths.contains(bytes.count) else { return nil }
    self.bytes = bytes
  }

  /// That it is a key, and how long.
  public var description: String { "a key of \(bytes.count) bytes" }
  /// The description only.
  public var customMirror: Mirror { Mirror(self, children: ["key": description]) }
}
