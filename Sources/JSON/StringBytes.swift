/// The meaning of bytes in a JSON string, for the scanner and the writer.
enum StringBytes {
  /// Returns a word with a high bit for each byte that needs a closer look.
  ///
  /// Such bytes are a quote, a backslash, bytes below 0x20 and above 0x7F. The lowest bit that is set is always right. A carry may set
  /// those above it.
  @inline(__always)
  static func special(_ word: UInt64) -> UInt64 {
    let each: UInt64 = 0x0101_0101_0101_0101
    let quote = word ^ (each &* 0x22)
    let backslash = word ^ (each &* 0x5C)
    let zeroed = ((quote &- each) & ~quote) | ((backslash &- each) & ~backslash) | ((word &- each &* 0x20) & ~word)
    return (zeroed | word) & (each &* 0x80)
  }

  /// Returns the length of the non-ASCII UTF-8 sequence at `start`; 0 if invalid.
  ///
  /// The rules are those of Unicode, table 3-7.
  @inline(__always)
  static func sequenceLength(_ bytes: UnsafeRawBufferPointer, at start: Int, limit: Int) -> Int {
    let first = bytes[start]
    let left = limit &- start
    if first &- 0xC2 < 0x1E {
      return left >= 2 && isContinuation(bytes[start &+ 1]) ? 2 : 0
    }
    if first & 0xF0 == 0xE0 {
      guard left >= 3, isContinuation(bytes[start &+ 1]), isContinuation(bytes[start &+ 2]) else { return 0 }
      let second = bytes[start &+ 1]
      if first == 0xE0 { return second >= 0xA0 ? 3 : 0 }
      if first == 0xED { return second < 0xA0 ? 3 : 0 }
      return 3
    }
    guard first &- 0xF0 < 5, left >= 4, isContinuation(bytes[start &+ 1]), isContinuation(bytes[start &+ 2]),
      isContinuation(bytes[start &+ 3])
    else { return 0 }
    let second = bytes[start &+ 1]
    if first == 0xF0 { return second >= 0x90 ? 4 : 0 }
    if first == 0xF4 { return second < 0x90 ? 4 : 0 }
    return 4
  }

  @inline(__always)
  private static func isContinuation(_ byte: UInt8) -> Bool { byte & 0xC0 == 0x80 }

  /// Returns the UTF-16 code unit of four hexadecimal digits at `start`.
  static func unit(_ bytes: UnsafeRawBufferPointer, at start: Int, limit: Int) -> UInt16? {
    guard start &+ 4 <= limit else { return nil }
    var unit: UInt16 = 0
    for offset in start..<start &+ 4 {
      let byte = bytes[offset]
      switch byte {
      case UInt8(ascii: "0")...UInt8(ascii: "9"): unit = unit &<< 4 | UInt16(byte &- UInt8(ascii: "0"))
      case UInt8(ascii: "A")...UInt8(ascii: "F"): unit = unit &<< 4 | UInt16(byte &- UInt8(ascii: "A") &+ 10)
      case UInt8(ascii: "a")...UInt8(ascii: "f"): unit = unit &<< 4 | UInt16(byte &- UInt8(ascii: "a") &+ 10)
      default: return nil
      }
    }
    return unit
  }

  /// Returns the low surrogate of the escape at `start`; nil if there is none.
  static func lowSurrogate(_ bytes: UnsafeRawBufferPointer, at start: Int, limit: Int) -> UInt16? {
    guard start &+ 6 <= limit, bytes[start] == UInt8(ascii: "\\"), bytes[start &+ 1] == UInt8(ascii: "u"),
      let unit = unit(bytes, at: start &+ 2, limit: limit), unit & 0xFC00 == 0xDC00
    else { return nil }
    return unit
  }
}
