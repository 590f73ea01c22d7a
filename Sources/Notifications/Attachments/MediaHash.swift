/// The name of a file: the SHA-256 of its content (FIPS 180-4).
public struct MediaHash: Sendable, Hashable, CustomStringConvertible {
  /// The number of bytes of a hash.
  public static var byteCount: Int { 32 }
  /// The number of characters of its text.
  public static var textCount: Int { 2 * byteCount }

  private let words: (UInt64, UInt64, UInt64, UInt64)

  /// Creates a hash from 32 bytes; nil for another number of bytes.
  public init?(bytes: UnsafeRawBufferPointer) {
    var reader = ByteReader(bytes)
    guard bytes.count == Self.byteCount, let first = reader.integer(UInt64.self), let second = reader.integer(UInt64.self),
      let third = reader.integer(UInt64.self), let fourth = reader.integer(UInt64.self)
    else { return nil }
    words = (first, second, third, fourth)
  }

  /// Reads 64 hexadecimal digits in lower case; nil for other texts.
  public init?(_ text: some StringProtocol) {
    var text = String(text)
    let words = text.withUTF8 { text -> (UInt64, UInt64, UInt64, UInt64)? in
      let text = UnsafeRawBufferPointer(text)
      guard text.count == Self.textCount, let first = Hexadecimal.read(UInt64.self, from: text, at: 0),
        let second = Hexadecimal.read(UInt64.self, from: text, at: 16), let third = Hexadecimal.read(UInt64.self, from: text, at: 32),
        let fourth = Hexadecimal.read(UInt64.self, from: text, at: 48)
      else { return nil }
      return (first, second, third, fourth)
    }
    guard let words else { return nil }
    self.words = words
  }

  /// The first byte. The media store divides its files by it.
  public var part: Int { Int(words.0 >> 56) }

  /// Appends its 32 bytes.
  public func append(to buffer: inout ByteBuffer) {
    buffer.append(words.0)
    buffer.append(words.1)
    buffer.append(words.2)
    buffer.append(words.3)
  }

  /// 64 hexadecimal digits in lower case.
  public var description: String {
    withUnsafeTemporaryAllocation(byteCount: Self.textCount, alignment: 1) { text in
      Hexadecimal.write(words.0, to: text, at: 0)
      Hexadecimal.write(words.1, to: text, at: 16)
      Hexadecimal.write(words.2, to: text, at: 32)
      Hexadecimal.write(words.3, to: text, at: 48)
      return String(decoding: text, as: UTF8.self)
    }
  }

  /// Whether both are equal.
  public static func == (one: MediaHash, other: MediaHash) -> Bool { one.words == other.words }

  /// Hashes the first bytes, which are random enough.
  public func hash(into hasher: inout Hasher) { hasher.combine(words.0) }
}
