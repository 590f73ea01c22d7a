/// The encoding of a `.strings` file, and the places in its text.
enum StringsText {
  /// The file's text as valid UTF-8, without byte order mark and without NUL.
  static func decode(_ bytes: [UInt8]) throws(StringsError) -> [UInt8] {
    if bytes.starts(with: "bplist".utf8) { throw StringsError(reason: .binaryPropertyList, line: 1, column: 1) }
    let text =
      switch (bytes.first, bytes.dropFirst().first) {
      case (0xFF, 0xFE): try utf16(bytes, highByte: 1)
      case (0xFE, 0xFF): try utf16(bytes, highByte: 0)
      default: try utf8(bytes)
      }
    if let nul = text.firstIndex(of: 0) { throw error(.nul, at: nul, of: text) }
    return text
  }

  /// An error at a place of the text.
  static func error(_ reason: StringsError.Reason, at offset: Int, of text: [UInt8]) -> StringsError {
    let before = text[..<min(offset, text.count)]
    var counter = LineCounter()
    let line = counter.line(of: before.endIndex, in: text)
    // Characters begin with a byte that does not continue another.
    let column = before[counter.lineStart...].count { $0 & 0xC0 != 0x80 } + 1
    return StringsError(reason: reason, line: line, column: column)
  }

  private static func utf8(_ bytes: [UInt8]) throws(StringsError) -> [UInt8] {
    let text = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? Array(bytes[3...]) : bytes
    do throws(UTF8.ValidationError) {
      _ = try UTF8Span(validating: text.span)
    } catch {
      throw Self.error(.invalidEncoding, at: error.byteOffsets.lowerBound, of: text)
    }
    return text
  }

  /// - Parameter highByte: which of a unit's two bytes has its high half.
  private static func utf16(_ bytes: [UInt8], highByte: Int) throws(StringsError) -> [UInt8] {
    let units = stride(from: 2, to: bytes.count - 1, by: 2).lazy.map { at in
      UInt16(bytes[at + highByte]) << 8 | UInt16(bytes[at + 1 - highByte])
    }
    var text: [UInt8] = []
    text.reserveCapacity(bytes.count)
    let isBroken = transcode(units.makeIterator(), from: UTF16.self, to: UTF8.self, stoppingOnError: true) { text.append($0) }
    if isBroken || !bytes.count.isMultiple(of: 2) { throw error(.invalidEncoding, at: text.count, of: text) }
    return text
  }
}

/// Counts lines from one place of a text to the next, so that a file is read only once.
struct LineCounter {
  private var line = 1
  private var counted = 0
  /// The beginning of the line of the last place.
  private(set) var lineStart = 0

  /// The line of a place, from 1. The places must be in order.
  mutating func line(of offset: Int, in text: [UInt8]) -> Int {
    while counted < offset {
      let byte = text[counted]
      counted += 1
      // A carriage return with its line feed ends one line, at the line feed.
      let isPaired = byte == UInt8(ascii: "\r") && counted < text.count && text[counted] == UInt8(ascii: "\n")
      if byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\r") && !isPaired { (line, lineStart) = (line + 1, counted) }
    }
    return line
  }
}
