/// The tokens of the grammar: strings, numbers and the three literals.
extension JSONScanner {
  /// Scans a string, from its opening quote at `position` past its closing one.
  ///
  /// It reads eight bytes at a time until one of them is a quote, a backslash, a control character or not ASCII.
  @usableFromInline
  mutating func scanString() throws(JSONError) -> JSONSpan {
    let start = position
    var cursor = start &+ 1
    var escaped = false
    while true {
      while cursor &+ 8 <= limit {
        let hits = StringBytes.special(bytes.loadUnaligned(fromByteOffset: cursor, as: UInt64.self))
        if hits != 0 {
          cursor &+= hits.trailingZeroBitCount &>> 3
          break
        }
        cursor &+= 8
      }
      guard cursor < limit else { throw fail(.truncated, at: limit) }
      let byte = bytes[cursor]
      if byte == UInt8(ascii: "\"") {
        position = cursor &+ 1
        return JSONSpan(start: start, end: cursor &+ 1, kind: .string, escaped: escaped)
      } else if byte == UInt8(ascii: "\\") {
        escaped = true
        cursor = try scanEscape(at: cursor)
      } else if byte >= 0x80 {
        repeat {
          let length = StringBytes.sequenceLength(bytes, at: cursor, limit: limit)
          guard length > 0 else { throw fail(.invalidUTF8, at: cursor) }
          cursor &+= length
        } while cursor < limit && bytes[cursor] >= 0x80
      } else if byte < 0x20 {
        throw fail(.controlCharacter, at: cursor)
      } else {
        cursor &+= 1
      }
    }
  }

  /// Returns the offset after the escape that begins at `start`.
  private mutating func scanEscape(at start: Int) throws(JSONError) -> Int {
    guard start &+ 1 < limit else { throw fail(.truncated, at: limit) }
    switch bytes[start &+ 1] {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"), UInt8(ascii: "f"), UInt8(ascii: "n"),
      UInt8(ascii: "r"), UInt8(ascii: "t"):
      return start &+ 2
    case UInt8(ascii: "u"):
      guard let unit = StringBytes.unit(bytes, at: start &+ 2, limit: limit) else { throw fail(.invalidEscape, at: start) }
      guard unit & 0xF800 == 0xD800 else { return start &+ 6 }
      guard unit < 0xDC00, StringBytes.lowSurrogate(bytes, at: start &+ 6, limit: limit) != nil else {
        throw fail(.loneSurrogate, at: start)
      }
      return start &+ 12
    default:
      throw fail(.invalidEscape, at: start)
    }
  }

  /// Scans a string, a number or a literal that begins with `byte` at `position`.
  @usableFromInline
  mutating func scanScalar(_ byte: UInt8) throws(JSONError) -> JSONSpan {
    switch byte {
    case UInt8(ascii: "\""): return try scanString()
    case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return try scanNumber()
    case UInt8(ascii: "t"): return try scanWord(.true, "true")
    case UInt8(ascii: "f"): return try scanWord(.false, "false")
    case UInt8(ascii: "n"): return try scanWord(.null, "null")
    default: throw unexpected()
    }
  }

  private mutating func scanWord(_ kind: JSONKind, _ word: StaticString) throws(JSONError) -> JSONSpan {
    let start = position
    for index in 0..<word.utf8CodeUnitCount {
      guard position < limit, bytes[position] == word.utf8Start[index] else { throw unexpected() }
      position &+= 1
    }
    return JSONSpan(start: start, end: position, kind: kind)
  }

  private mutating func scanNumber() throws(JSONError) -> JSONSpan {
    let start = position
    if bytes[position] == UInt8(ascii: "-") { position &+= 1 }
    if position < limit, bytes[position] == UInt8(ascii: "0") {
      position &+= 1
      if position < limit, isDigit(position) { throw fail(.invalidNumber, at: position) }
    } else {
      try scanDigits()
    }
    if position < limit, bytes[position] == UInt8(ascii: ".") {
      position &+= 1
      try scanDigits()
    }
    if position < limit, bytes[position] | 0x20 == UInt8(ascii: "e") {
      position &+= 1
      if position < limit, bytes[position] == UInt8(ascii: "+") || bytes[position] == UInt8(ascii: "-") { position &+= 1 }
      try scanDigits()
    }
    return JSONSpan(start: start, end: position, kind: .number)
  }

  private mutating func scanDigits() throws(JSONError) {
    let start = position
    while position < limit, isDigit(position) { position &+= 1 }
    guard position > start else { throw fail(.invalidNumber, at: position) }
  }

  private func isDigit(_ offset: Int) -> Bool { bytes[offset] &- UInt8(ascii: "0") < 10 }
}
