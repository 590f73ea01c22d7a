/// The name of a file: the SHA-256 of its content (FIPS 180-4).
public struct MediaHash: Sendable, Hashable, CustomStringConvertible {
  /// The number of bytes of a hash.
  public static var byteCount: Int { 32 }
  /// The number of characters of its text.
  public static var textCount: Int { 2 * byteCount }

  private var words = InlineArray<4, UInt64>(repeating: 0)

  /// Creates a hash from 32 bytes; nil for another number of bytes.
  public init?(bytes: UnsafeRawBufferPointer) {
    guard bytes.count == Self.byteCount else { return nil }
    var reader = ByteReader(bytes)
    for index in words.indices { words[index] = reader.integer(UInt64.self) ?? 0 }
  }

  /// Reads 64 hexadecimal digits in lower case; nil for other texts.
  public init?(_ text: some StringProtocol) {
    guard text.utf8.count == Self.textCount else { return nil }
    var text = String(text)
    let isHash = text.withUTF8 { text in
      words.indices.allSatisfy { index in
        let word = Hexadecimal.read(UInt64.self, from: UnsafeRawBufferPointer(text), at: 16 * index)
        words[index] = word ?? 0
        return word != nil
      }
    }
    if !isHash { return nil }
  }

  /// The first byte. The media store divides its files by it.
  public var part: Int { Int(words[0] >> 56) }

  /// Appends its 32 bytes.
  public func append(to buffer: inout ByteBuffer) {
    for index in words.indices { buffer.append(words[index]) }
  }

  /// 64 hexadecimal digits in lower case.
  public var description: String {
    withUnsafeTemporaryAllocation(byteCount: Self.textCount, alignment: 1) { text in
      for index in words.indices { Hexadecimal.write(words[index], to: text, at: 16 * index) }
      return String(decoding: text, as: UTF8.self)
    }
  }

  /// Whether both are equal.
  public static func == (one: MediaHash, other: MediaHash) -> Bool {
    one.words.indices.allSatisfy { one.words[$0] == other.words[$0] }
  }

  /// Hashes the first bytes, which are random enough.
  public func hash(into hasher: inout Hasher) { hasher.combine(words[0]) }
}
