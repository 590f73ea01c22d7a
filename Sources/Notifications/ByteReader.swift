internal import Glibc

/// Takes fields off the front of borrowed bytes; every step answers `nil` where the bytes end too early.
public struct ByteReader {
  /// What was not taken yet.
  public private(set) var rest: UnsafeRawBufferPointer

  /// Begins at the first byte.
  public init(_ bytes: UnsafeRawBufferPointer) { rest = bytes }

  /// One byte.
  public mutating func byte() -> UInt8? { integer(UInt8.self) }

  /// A number in network byte order; nil where too few bytes are left.
  public mutating func integer<Value: FixedWidthInteger>(_ type: Value.Type) -> Value? {
    guard let field = bytes(MemoryLayout<Value>.size) else { return nil }
    return Value(bigEndian: field.loadUnaligned(as: Value.self))
  }

  /// So many bytes.
  public mutating func bytes(_ count: Int) -> UnsafeRawBufferPointer? {
    guard count >= 0, count <= rest.count else { return nil }
    let field = UnsafeRawBufferPointer(rebasing: rest[0..<count])
    rest = UnsafeRawBufferPointer(rebasing: rest[count...])
    return field
  }

  /// A field behind the one byte that gives its length.
  public mutating func shortField() -> UnsafeRawBufferPointer? { byte().flatMap { bytes(Int($0)) } }

  /// A field behind the two bytes that give its length.
  mutating func longField() -> UnsafeRawBufferPointer? { integer(UInt16.self).flatMap { bytes(Int($0)) } }
}

extension UnsafeRawBufferPointer {
  /// No bytes.
  static var none: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: nil, count: 0) }

  /// Whether these are exactly the characters of the program's own word.
  @inline(__always)
  func equals(_ word: StaticString) -> Bool {
    count == word.utf8CodeUnitCount && starts(with: word)
  }

  /// Whether the first characters are those of the program's own word.
  @inline(__always)
  func starts(with word: StaticString) -> Bool {
    guard count >= word.utf8CodeUnitCount else { return false }
    for index in 0..<word.utf8CodeUnitCount where self[index] != word.utf8Start[index] { return false }
    return true
  }

  /// Whether the last characters are those of the program's own word.
  @inline(__always)
  func ends(with word: StaticString) -> Bool {
    guard count >= word.utf8CodeUnitCount else { return false }
    return UnsafeRawBufferPointer(rebasing: self[(count &- word.utf8CodeUnitCount)...]).starts(with: word)
  }

  /// Whether these are the characters of a word of the program in lower case, or in any other case of ASCII letters.
  @inline(never)
  func equalsIgnoringCase(_ word: StaticString) -> Bool {
    count == word.utf8CodeUnitCount && startsIgnoringCase(with: word)
  }

  /// Whether the first characters are those of a word of the program in lower case, or in any other case of ASCII letters.
  @inline(never)
  func startsIgnoringCase(with word: StaticString) -> Bool {
    guard count >= word.utf8CodeUnitCount else { return false }
    for index in 0..<word.utf8CodeUnitCount where self[index].inLowerCase != word.utf8Start[index] { return false }
    return true
  }

  /// The same bytes without the first `length`.
  func dropping(_ length: Int) -> UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: self[Swift.min(length, count)...]) }

  /// Byte for byte the same.
  func equals(_ other: UnsafeRawBufferPointer) -> Bool {
    guard count == other.count else { return false }
    guard let bytes = baseAddress, let others = other.baseAddress else { return true }
    return memcmp(bytes, others, count) == 0
  }

  /// A copy as text; bytes that are no UTF-8 become U+FFFD.
  var text: String { String(decoding: self, as: UTF8.self) }

  /// Whether this is UTF-8 without control characters (U+0000 to U+001F, U+007F).
  var isPlainText: Bool {
    var isASCII = true
    for byte in self {
      if byte < 0x20 || byte == 0x7F { return false }
      if byte >= 0x80 { isASCII = false }
    }
    return isASCII || String(validating: self, as: UTF8.self) != nil
  }
}

extension UInt8 {
  /// The ASCII letter in lower case; any other byte as it is.
  fileprivate var inLowerCase: UInt8 { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(self) ? self | 0x20 : self }
}

extension StaticString {
  /// The characters, which live as long as the program.
  var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: utf8Start, count: utf8CodeUnitCount) }
}
