/// A JSON number as text, for its exact integer.
struct DecimalText {
  private let text: UnsafeRawBufferPointer

  init(_ text: UnsafeRawBufferPointer) { self.text = text }

  /// The number if it is an integer that fits; `nil` otherwise, and for malformed text.
  var integer: Int64? {
    let isNegative = text.first == UInt8(ascii: "-")
    let first = isNegative ? 1 : 0
    guard first < text.count else { return nil }
    var value: Int64 = 0
    for offset in first..<text.count {
      let digit = text[offset] &- UInt8(ascii: "0")
      // A point, an exponent or a digit beyond the range is rare. The slow way handles all of them.
      guard digit < 10, let next = Self.append(digit, to: value) else { return scaled(from: first, isNegative: isNegative) }
      value = next
    }
    if isNegative { return value }
    return value == .min ? nil : -value
  }

  /// Reads digits with a point or an exponent.
  ///
  /// The number is m × 10^e, without leading or trailing zeros in m.
  private func scaled(from first: Int, isNegative: Bool) -> Int64? {
    var value: Int64 = 0
    var exponent = 0
    var zeros = 0
    var isFraction = false
    var offset = first
    scan: while offset < text.count {
      let byte = text[offset]
      offset += 1
      switch byte {
      case UInt8(ascii: "."): isFraction = true
      case UInt8(ascii: "e"), UInt8(ascii: "E"): break scan
      default:
        let digit = byte &- UInt8(ascii: "0")
        guard digit < 10 else { return nil }
        if isFraction { exponent -= 1 }
        guard digit > 0 else {
          zeros += 1
          continue
        }
        if value != 0 { guard Self.multiply(&value, byPowerOfTen: zeros) else { return nil } }
        zeros = 0
        guard let next = Self.append(digit, to: value) else { return nil }
        value = next
      }
    }
    if value == 0 { return 0 }
    exponent += zeros
    if offset < text.count {
      guard let written = writtenExponent(from: offset) else { return nil }
      exponent += written
    }
    guard exponent >= 0, Self.multiply(&value, byPowerOfTen: exponent) else { return nil }
    if isNegative { return value }
    return value == .min ? nil : -value
  }

  /// Reads the exponent after the letter. It is limited to a range that no text in memory exceeds.
  private func writtenExponent(from start: Int) -> Int? {
    var offset = start
    let isNegative = text[offset] == UInt8(ascii: "-")
    if isNegative || text[offset] == UInt8(ascii: "+") { offset += 1 }
    var exponent = 0
    while offset < text.count {
      let digit = text[offset] &- UInt8(ascii: "0")
      guard digit < 10 else { return nil }
      exponent = min(exponent * 10 + Int(digit), 1 << 40)
      offset += 1
    }
    return isNegative ? -exponent : exponent
  }

  /// Appends a digit. Values are built below zero, where the range has one more.
  @inline(__always)
  private static func append(_ digit: UInt8, to value: Int64) -> Int64? {
    let (product, overflowed) = value.multipliedReportingOverflow(by: 10)
    let (sum, underflowed) = product.subtractingReportingOverflow(Int64(digit))
    return overflowed || underflowed ? nil : sum
  }

  private static func multiply(_ value: inout Int64, byPowerOfTen power: Int) -> Bool {
    guard power < 20 else { return false }
    for _ in 0..<power {
      let (product, overflowed) = value.multipliedReportingOverflow(by: 10)
      if overflowed { return false }
      value = product
    }
    return true
  }
}
