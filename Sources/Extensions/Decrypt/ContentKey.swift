/// The secret from which the keys of encrypted content derive (the input keying material of RFC 8188). No text or dump shows it.
public struct ContentKey: Sendable, CustomStringConvertible, CustomReflectable {
  /// The allowed number of bytes: at least that of an AES key, and more than a hash's block add nothing.
  public static var lengths: ClosedRange<Int> { 16...64 }

  let bytes: [UInt8]

  /// Makes a key, which must be hard to guess; nil for a wrong number of bytes.
  public init?(_ bytes: [UInt8]) {
    guard Self.lengths.contains(bytes.count) else { return nil }
    self.bytes = bytes
  }

  /// Names a key and its length.
  public var description: String { "a key of \(bytes.count) bytes" }
  /// The description only.
  public var customMirror: Mirror { Mirror(self, children: ["key": description]) }
}
