/// Bytes as hexadecimal digits (RFC 4648, section 8).
public enum Hexadecimal {
  private static let digits = Array("0123456789abcdef".utf8)

  /// Two lower-case digits a byte.
  public static func encode(_ bytes: [UInt8]) -> String {
    String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
  }

  /// Reads digits of either case; nil for an odd number of them or anything else.
  public static func decode(_ text: String) -> [UInt8]? {
    let letters = Array(text.utf8)
    guard letters.count % 2 == 0 else { return nil }
    var bytes: [UInt8] = []
    for index in stride(from: 0, to: letters.count, by: 2) {
      guard let high = value(letters[index]), let low = value(letters[index + 1]) else { return nil }
      bytes.append(high << 4 | low)
    }
    return bytes
  }

  private static func value(_ letter: UInt8) -> UInt8? {
    switch letter {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): letter - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): letter - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): letter - UInt8(ascii: "A") + 10
    default: nil
    }
  }
}
