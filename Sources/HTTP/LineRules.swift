/// The rules for a message's lines that Debian's http_parser leaves to its caller: lines end in CR LF, a field is not folded, and the
/// version is HTTP.
///
/// If a server in front reads a line differently, a request can hide in another one (RFC 9112, sections 2.2, 2.3, 5.2 and 7.1). A value.
struct LineRules {
  private enum Position {
    /// Empty lines may precede the first one.
    case beforeHead
    case firstLine, lineStart, line
    case ended
  }

  private static let (cr, lf): (UInt8, UInt8) = (0x0D, 0x0A)
  /// `HTTP/` as a number.
  private static let name = "HTTP/".utf8.reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
  private static let badLineEnd = MessageFailure.malformed("a line must end in CR LF")

  private let isRequest: Bool
  private var position = Position.beforeHead
  /// The position after the LF that must come now.
  private var afterLF: Position?
  /// The first line's length, and its last eight bytes.
  private var count = 0
  private var last: UInt64 = 0

  init(isRequest: Bool) { self.isRequest = isRequest }

  /// Whether the lines of the head, or of the trailer, have ended.
  var hasEnded: Bool { position == .ended }

  /// The fields after the last chunk follow the same rules as those of the head.
  mutating func beginTrailer() { position = .lineStart }

  /// Takes bytes of a head or a trailer up to its end.
  ///
  /// - Returns: the number of bytes that belong to it, and the fault, if there is one.
  mutating func take(_ bytes: UnsafeRawBufferPointer) -> (count: Int, fault: MessageFailure?) {
    for (index, byte) in bytes.enumerated() {
      if hasEnded { return (index, nil) }
      if let fault = take(byte) { return (index, fault) }
    }
    return (bytes.count, nil)
  }

  private mutating func take(_ byte: UInt8) -> MessageFailure? {
    if let next = afterLF {
      afterLF = nil
      position = next
      return byte == Self.lf ? nil : Self.badLineEnd
    }
    switch (position, byte) {
    case (_, Self.lf): return Self.badLineEnd
    case (.beforeHead, Self.cr): afterLF = .beforeHead
    case (.firstLine, Self.cr):
      afterLF = .lineStart
      if isRequest, last >> 24 != Self.name { return .malformed("its first line must end in 'HTTP/' and a version") }
    case (.line, Self.cr): afterLF = .lineStart
    case (.lineStart, Self.cr): afterLF = .ended
    case (.lineStart, 0x20), (.lineStart, 0x09): return .malformed("a header field must not be folded over lines")
    case (.beforeHead, _), (.firstLine, _):
      position = .firstLine
      count += 1
      last = last << 8 | UInt64(byte)
      if !isRequest, count == 5, last != Self.name { return .malformed("its first line must begin with 'HTTP/'") }
    case (.lineStart, _): position = .line
    case (.line, _), (.ended, _): break
    }
    return nil
  }
}

/// The same rules for the lines between the chunks of a body. http_parser reports their ends.
struct ChunkRules {
  private static let lineEnd: UInt16 = 0x0D0A
  /// Whether it reads a line with a chunk's size, and not a chunk.
  private var isInSize = true
  /// The last two bytes.
  private var last: UInt16 = 0

  /// Takes the bytes that http_parser has taken.
  ///
  /// - Parameter isAtEnd: whether they end with the end of a line, after a size or a chunk.
  mutating func take(_ bytes: UnsafeRawBufferPointer, isAtEnd: Bool) -> MessageFailure? {
    for byte in bytes.suffix(2) { last = last << 8 | UInt16(byte) }
    // For http_parser a chunk's extensions end in CR, whatever comes before.
    let hasBareLF = isInSize && bytes.dropLast(isAtEnd ? 1 : 0).contains(0x0A)
    if isAtEnd { isInSize.toggle() }
    return hasBareLF || isAtEnd && last != Self.lineEnd ? .malformed("a chunk and its size must end in CR LF") : nil
  }
}
