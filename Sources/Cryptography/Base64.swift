/// Base64 (RFC 4648): the standard alphabet with padding, and the one for URLs without.
///
/// Decoding is strict: no white space, no other alphabet's letters, no bits beyond the last byte, padding where it belongs.
public enum Base64 {
  private static let standard = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
  private static let url = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
  private static let standardValues = values(standard)
  private static let urlValues = values(url)

  private static func values(_ alphabet: [UInt8]) -> [UInt8] {
    var values = [UInt8](repeating: 0xFF, count: 256)
    for (value, letter) in alphabet.enumerated() { values[Int(letter)] = UInt8(value) }
    return values
  }

  /// With the standard alphabet and padding (section 4).
  public static func encode(_ bytes: UnsafeRawBufferPointer) -> String { encode(bytes, standard, isPadded: true) }

  /// With the alphabet for URLs, without padding (section 5).
  public static func encode(url bytes: UnsafeRawBufferPointer) -> String { encode(bytes, url, isPadded: false) }

  /// The same, valid during the call and copied nowhere.
  public static func withText<R>(url bytes: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R {
    try withUnsafeTemporaryAllocation(of: UInt8.self, capacity: capacity(bytes)) { text in
      let count = write(bytes, url, isPadded: false, to: text)
      return try body(UnsafeRawBufferPointer(UnsafeMutableBufferPointer(rebasing: text[..<count])))
    }
  }

  private static func encode(_ bytes: UnsafeRawBufferPointer, _ alphabet: [UInt8], isPadded: Bool) -> String {
    String(unsafeUninitializedCapacity: capacity(bytes)) { write(bytes, alphabet, isPadded: isPadded, to: $0) }
  }

  private static func capacity(_ bytes: UnsafeRawBufferPointer) -> Int { (bytes.count + 2) / 3 * 4 }

  /// Answers how many letters there are.
  private static func write(
    _ bytes: UnsafeRawBufferPointer, _ alphabet: [UInt8], isPadded: Bool, to text: UnsafeMutableBufferPointer<UInt8>
  ) -> Int {
    alphabet.withUnsafeBufferPointer { alphabet in
      var written = 0
      for start in stride(from: 0, to: bytes.count, by: 3) {
        let count = min(3, bytes.count - start)
        var word = UInt32(bytes[start]) << 16
        if count > 1 { word |= UInt32(bytes[start + 1]) << 8 }
        if count > 2 { word |= UInt32(bytes[start + 2]) }
        for index in 0...count {
          text[written] = alphabet[Int(word >> UInt32(18 - 6 * index) & 63)]
          written += 1
        }
        if isPadded {
          for _ in count..<3 {
            text[written] = UInt8(ascii: "=")
            written += 1
          }
        }
      }
      return written
    }
  }

  /// Reads the standard form; nil for anything else.
  public static func decode(_ text: String) -> [UInt8]? {
    var letters = Array(text.utf8)[...]
    guard letters.count % 4 == 0 else { return nil }
    for _ in 0..<2 where letters.last == UInt8(ascii: "=") { letters.removeLast() }
    return decode(letters, standardValues)
  }

  /// Reads the form for URLs; nil for anything else.
  public static func decode(url text: String) -> [UInt8]? { decode(Array(text.utf8)[...], urlValues) }

  private static func decode(_ letters: ArraySlice<UInt8>, _ values: [UInt8]) -> [UInt8]? {
    guard letters.count % 4 != 1 else { return nil }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(letters.count * 3 / 4)
    var word: UInt32 = 0
    var bits = 0
    for letter in letters {
      let value = values[Int(letter)]
      guard value != 0xFF else { return nil }
      word = word << 6 | UInt32(value)
      bits += 6
      if bits >= 8 {
        bits -= 8
        bytes.append(UInt8(truncatingIfNeeded: word >> UInt32(bits)))
      }
    }
    return word & (1 << UInt32(bits) - 1) == 0 ? bytes : nil
  }
}
