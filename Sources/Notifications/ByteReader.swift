internal import Glibc

/// Takes fields from the front of borrowed bytes. Each step returns `nil` if the bytes end too early.
public struct ByteReader {
  /// The bytes that are not read yet.
  public private(set) var rest: UnsafeRawBufferPointer

  /// Creates a reader at the first byte.
  public init(_ bytes: UnsafeRawBufferPointer) { rest = bytes }

  /// Reads one byte.
  public mutating func byte() -> UInt8? { integer(UInt8.self) }

  /// Reads a number in network byte order; nil if too few bytes are left.
  public mutating func integer<Value: FixedWidthInteger>(_ type: Value.Type) -> Value? {
    guard let field = bytes(MemoryLayout<Value>.size) else { return nil }
    return Value(bigEndian: field.loadUnaligned(as: Value.self))
  }

  /// Reads a number of bytes.
  public mutating func bytes(_ count: Int) -> UnsafeRawBufferPointer? {
    guard count >= 0, count <= rest.count else { return nil }
    let field = UnsafeRawBufferPointer(rebasing: rest[0..<count])
    rest = UnsafeRawBufferPointer(rebasing: rest[count...])
    return field
  }

  /// Reads a field after the one byte of its length.
  public mutating func shortField() -> UnsafeRawBufferPointer? { byte().flatMap { bytes(Int($0)) } }

  /// Reads a field after the two bytes of its length.
  mutating func longField() -> UnsafeRawBufferPointer? { integer(UInt16.self).flatMap { bytes(Int($0)) } }
}

extension UnsafeRawBufferPointer {
  /// No bytes.
  package static var empty: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: nil, count: 0) }

  /// Whether the bytes equal a word of the program.
  @inline(__always)
  func equals(_ word: StaticString) -> Bool {
    count == word.utf8CodeUnitCount && starts(with: word)
  }

  /// Whether the bytes begin with a word of the program.
  @inline(__always)
  func starts(with word: StaticString) -> Bool {
    guard count >= word.utf8CodeUnitCount else { return false }
    for index in 0..<word.utf8CodeUnitCount where self[index] != word.utf8Start[index] { return false }
    return true
  }

  /// Whether the bytes end with a word of the program.
  @inline(__always)
  func ends(with word: StaticString) -> Bool {
    guard count >= word.utf8CodeUnitCount else { return false }
    return UnsafeRawBufferPointer(rebasing: self[(count &- word.utf8CodeUnitCount)...]).starts(with: word)
  }

  /// Whether the bytes equal a word in lower case, in any case of ASCII letters.
  @inline(never)
  func equalsIgnoringCase(_ word: StaticString) -> Bool {
    count == word.utf8CodeUnitCount && startsIgnoringCase(with: word)
  }

  /// Whether the bytes begin with a lower-case word, in any case of ASCII letters.
  @inline(never)
  func startsIgnoringCase(with word: StaticString) -> Bool {
    guard count >= word.utf8CodeUnitCount else { return false }
    for index in 0..<word.utf8CodeUnitCount where self[index].inLowerCase != word.utf8Start[index] { return false }
    return true
  }

  /// Returns the bytes after the first `length` ones.
  func dropping(_ length: Int) -> UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: self[Swift.min(length, count)...]) }

  /// Whether both have the same bytes.
  func equals(_ other: UnsafeRawBufferPointer) -> Bool {
    guard count == other.count else { return false }
    guard let bytes = baseAddress, let others = other.baseAddress else { return true }
    return memcmp(bytes, others, count) == 0
  }

  /// The bytes as text. Bytes that are not UTF-8 become U+FFFD.
  package var text: String { String(decoding: self, as: UTF8.self) }

  /// Whether the bytes are UTF-8 without control characters (U+0000 to U+001F, U+007F).
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
  /// The byte, with an ASCII letter in lower case.
  fileprivate var inLowerCase: UInt8 { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(self) ? self | 0x20 : self }
}

extension StaticString {
  /// The characters, which live as long as the program.
  var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: utf8Start, count: utf8CodeUnitCount) }
}
