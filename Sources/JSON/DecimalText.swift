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
      // A point or an exponent is rare.
      guard digit < 10, let next = Self.append(digit, to: value) else { return scaled }
      value = next
    }
    if isNegative { return value }
    return value == .min ? nil : -value
  }

  /// Reads a number with a point or an exponent: an integer of at most `exactDigits` digits, up to 2^53.
  ///
  /// A fraction of so many digits never has the double of an integer, unless it is too small for a double.
  private var scaled: Int64? {
    let digits = text.prefix { $0 | 0x20 != UInt8(ascii: "e") }.lazy.map { $0 &- UInt8(ascii: "0") }.filter { $0 < 10 }
    guard digits.count <= Self.exactDigits, let value = Double(String(decoding: text, as: UTF8.self)), value.magnitude <= 0x1p53,
      value != 0 || digits.allSatisfy({ $0 == 0 })
    else { return nil }
    return Int64(exactly: value)
  }

  private static let exactDigits = 15

  /// Appends a digit. Values are built below zero, where the range has one more.
  @inline(__always)
  private static func append(_ digit: UInt8, to value: Int64) -> Int64? {
    let (product, overflowed) = value.multipliedReportingOverflow(by: 10)
    let (sum, underflowed) = product.subtractingReportingOverflow(Int64(digit))
    return overflowed || underflowed ? nil : sum
  }
}
