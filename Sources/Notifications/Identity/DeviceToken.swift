/// The token of one installation of one application on one device.
///
/// It consists of 64 to 512 hexadecimal digits, an even number, in lower case. Nothing else is known of a token. It is kept as text,
/// because keys and frames contain the text.
public struct DeviceToken: Hashable, Sendable, CustomStringConvertible {
  /// The minimum number of digits.
  public static var shortest: Int { 64 }
  /// The maximum number of digits.
  public static var longest: Int { 512 }

  /// The digits in lower case.
  public let text: String

  /// Creates a token from digits of either case; `nil` if they are not a token.
  public init?(_ text: String) {
    var text = text
    guard let token = text.withUTF8({ DeviceToken(UnsafeRawBufferPointer($0)) }) else { return nil }
    self = token
  }

  /// Creates a token from digits of either case; `nil` if they are not a token.
  public init?(_ bytes: UnsafeRawBufferPointer) {
    guard Self.isValid(bytes) else { return nil }
    text = String(unsafeUninitializedCapacity: bytes.count) {
      Self.normalise(bytes, into: UnsafeMutableRawBufferPointer($0))
      return bytes.count
    }
  }

  /// Creates a token from the bytes of ``append(packed:to:)``; `nil` if they are not a token.
  public init?(packed bytes: UnsafeRawBufferPointer) {
    guard bytes.count * 2 >= Self.shortest, bytes.count * 2 <= Self.longest else { return nil }
    text = Hexadecimal.text(bytes)
  }

  /// Appends a valid token, two digits to a byte.
  public static func append(packed digits: UnsafeRawBufferPointer, to buffer: inout ByteBuffer) {
    buffer.append(count: digits.count / 2) { output in
      for index in output.indices {
        output[index] = Hexadecimal.validValue(digits[2 * index]) << 4 | Hexadecimal.validValue(digits[2 * index + 1])
      }
    }
  }

  /// Whether the bytes are a token, in either case.
  public static func isValid(_ bytes: UnsafeRawBufferPointer) -> Bool {
    guard bytes.count >= shortest, bytes.count <= longest, bytes.count & 1 == 0 else { return false }
    return bytes.allSatisfy { Hexadecimal.value($0) != nil }
  }

  /// Whether a valid token is in lower case.
  public static func isNormal(_ bytes: UnsafeRawBufferPointer) -> Bool {
    bytes.allSatisfy { $0 >= UInt8(ascii: "a") || $0 <= UInt8(ascii: "9") }
  }

  /// Appends a valid token in lower case.
  public static func append(_ bytes: UnsafeRawBufferPointer, to buffer: inout ByteBuffer) {
    buffer.append(count: bytes.count) { normalise(bytes, into: $0) }
  }

  /// Returns the stable hash of a valid token, the same for both cases.
  public static func hash(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
    if isNormal(bytes) { return StableHash.hash(bytes) }
    return withUnsafeTemporaryAllocation(byteCount: max(bytes.count, 1), alignment: 8) { copy in
      normalise(bytes, into: copy)
      return StableHash.hash(UnsafeRawBufferPointer(rebasing: copy[0..<bytes.count]))
    }
  }

  /// Returns the stable hash of the token.
  public func hash64() -> UInt64 { StableHash.hash(text) }

  /// The digits.
  public var description: String { text }

  /// Sets the bit of lower case, which digits have anyway.
  private static func normalise(_ bytes: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer) {
    for index in 0..<min(bytes.count, output.count) { output[index] = bytes[index] | 0x20 }
  }
}
