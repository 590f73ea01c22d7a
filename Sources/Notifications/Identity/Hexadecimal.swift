/// Bytes and numbers as hexadecimal digits (RFC 4648, section 8), written in lower case.
public enum Hexadecimal {
  /// Returns the value of a digit of either case; nil for another byte.
  @inline(__always)
  public static func value(_ digit: UInt8) -> UInt8? {
    switch digit {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): digit &- UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): digit &- UInt8(ascii: "a") &+ 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): digit &- UInt8(ascii: "A") &+ 10
    default: nil
    }
  }

  /// Returns the value of a valid digit of either case. Letters have the bit of 64 and end in 1 to 6.
  @inline(__always)
  static func validValue(_ digit: UInt8) -> UInt8 { digit & 0xF &+ (digit >> 6) &* 9 }

  /// Returns the value of a digit; nil for another byte, or for upper case.
  @inline(__always)
  static func lowerCaseValue(_ digit: UInt8) -> UInt8? {
    digit >= UInt8(ascii: "A") && digit <= UInt8(ascii: "F") ? nil : value(digit)
  }

  @inline(__always)
  static func digit(_ value: UInt8) -> UInt8 {
    value < 10 ? UInt8(ascii: "0") &+ value : UInt8(ascii: "a") &+ value &- 10
  }

  /// Writes two digits for each byte of `value`, the most significant first.
  static func write<Value: FixedWidthInteger & UnsignedInteger>(_ value: Value, to output: UnsafeMutableRawBufferPointer, at offset: Int) {
    let digits = MemoryLayout<Value>.size * 2
    var rest = value
    for index in stride(from: digits - 1, through: 0, by: -1) {
      output[offset + index] = digit(UInt8(truncatingIfNeeded: rest & 0xF))
      rest >>= 4
    }
  }

  /// Reads as many lower-case digits as the type has.
  public static func read<Value: FixedWidthInteger & UnsignedInteger>(
    _ type: Value.Type, from input: UnsafeRawBufferPointer, at offset: Int
  ) -> Value? {
    let digits = MemoryLayout<Value>.size * 2
    guard offset >= 0, offset + digits <= input.count else { return nil }
    var value: Value = 0
    for index in offset..<offset + digits {
      guard let digit = lowerCaseValue(input[index]) else { return nil }
      value = value << 4 | Value(digit)
    }
    return value
  }

  /// Returns two digits for each byte.
  public static func text(_ bytes: [UInt8]) -> String { bytes.withUnsafeBytes { text($0) } }

  /// Returns two digits for each byte.
  static func text(_ bytes: UnsafeRawBufferPointer) -> String {
    String(unsafeUninitializedCapacity: 2 * bytes.count) { output in
      for (index, byte) in bytes.enumerated() {
        output[2 * index] = digit(byte >> 4)
        output[2 * index + 1] = digit(byte & 0xF)
      }
      return 2 * bytes.count
    }
  }
}
