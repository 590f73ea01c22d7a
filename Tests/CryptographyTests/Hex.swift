/// Bytes as the standards write them in their test vectors.
extension [UInt8] {
  /// Reads digits of either case; nil for an odd number of them or anything else.
  init?(hex text: String) {
    let digits = text.compactMap(\.hexDigitValue)
    guard digits.count == text.utf8.count, digits.count % 2 == 0 else { return nil }
    self = stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
  }

  /// Two lower-case digits for each byte.
  var hex: String { map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() }
}
