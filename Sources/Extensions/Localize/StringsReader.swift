import Notifications

/// Reads the entries of a `.strings` file's text.
struct StringsReader {
  /// Valid UTF-8 without NUL.
  private let text: [UInt8]
  private var at = 0

  init(_ text: [UInt8]) { self.text = text }

  /// All entries, to the end of the text.
  mutating func entries() throws(StringsError) -> [Name: StringsFile.Entry] {
    var entries: [Name: StringsFile.Entry] = [:]
    var lines = LineCounter()
    try skipSpace()
    if text[at...].starts(with: "<?xml".utf8) || text[at...].starts(with: "<!DOCTYPE".utf8) || text[at...].starts(with: "<plist".utf8) {
      throw error(.xmlPropertyList, at: at)
    }
    while let first = peek {
      let start = at
      let key = try string(first, missing: .keyExpected, limit: StringsFile.keyBytes, tooLong: .keyTooLong)
      let value = try value(of: key)
      let entry = StringsFile.Entry(value: value, line: lines.line(of: start, in: text))
      if let former = entries.updateValue(entry, forKey: Name(key)) { throw error(.repeatedKey(firstLine: former.line), at: start) }
      if entries.count > StringsFile.entryCount { throw error(.tooManyEntries, at: start) }
      try skipSpace()
    }
    return entries
  }

  private var peek: UInt8? { at < text.count ? text[at] : nil }

  private func error(_ reason: StringsError.Reason, at offset: Int) -> StringsError { StringsText.error(reason, at: offset, of: text) }

  /// The rest after a key: `= value;`, or only `;`.
  private mutating func value(of key: String) throws(StringsError) -> String {
    var end = at
    try skipSpace()
    var value = key
    if peek == UInt8(ascii: "=") {
      at += 1
      try skipSpace()
      guard let first = peek else { throw error(.valueExpected, at: at) }
      value = try string(first, missing: .valueExpected, limit: StringsFile.valueBytes, tooLong: .valueTooLong)
      end = at
      try skipSpace()
      // The error names the place of the missing character, which may be lines before the next entry.
      guard peek == UInt8(ascii: ";") else { throw error(.semicolonExpected, at: end) }
    } else if peek != UInt8(ascii: ";") {
      throw error(.equalsExpected, at: end)
    }
    at += 1
    return value
  }

  // MARK: Strings

  /// A string, quoted or not, which begins with the present byte.
  private mutating func string(
    _ first: UInt8, missing: StringsError.Reason, limit: Int, tooLong: StringsError.Reason
  ) throws(StringsError) -> String {
    let start = at
    var bytes: [UInt8] = []
    switch first {
    case UInt8(ascii: "\""), UInt8(ascii: "'"):
      at += 1
      while let byte = peek, byte != first, bytes.count <= limit {
        at += 1
        if byte == UInt8(ascii: "\\") { try unescape(into: &bytes, of: start) } else { bytes.append(byte) }
      }
      if bytes.count <= limit {
        guard peek != nil else { throw error(.unterminatedString, at: start) }
        at += 1
      }
    case UInt8(ascii: "("), UInt8(ascii: "{"), UInt8(ascii: "<"):
      throw error(missing == .valueExpected ? .valueIsNoString : missing, at: start)
    default:
      while let byte = peek, Self.isUnquoted(byte), bytes.count <= limit {
        at += 1
        bytes.append(byte)
      }
      if bytes.isEmpty { throw error(isCurlyQuote ? .curlyQuote : missing, at: start) }
    }
    if bytes.count > limit { throw error(tooLong, at: start) }
    return String(decoding: bytes, as: UTF8.self)
  }

  private static func isUnquoted(_ byte: UInt8) -> Bool { byte.isLetter || byte.isDigit || "_$/:.-".utf8.contains(byte) }

  /// U+2018 to U+201F: the quotation marks of word processors.
  private var isCurlyQuote: Bool {
    at + 2 < text.count && text[at] == 0xE2 && text[at + 1] == 0x80 && (0x98...0x9F).contains(text[at + 2])
  }

  // MARK: Escapes

  /// Appends the character of an escape, whose backslash has been read. An unknown escape is its own character, as in `\'`.
  ///
  /// - Parameter start: the beginning of the string.
  private mutating func unescape(into bytes: inout [UInt8], of start: Int) throws(StringsError) {
    guard let letter = peek else { throw error(.unterminatedString, at: start) }
    let escape = at - 1
    at += 1
    switch letter {
    case UInt8(ascii: "0")...UInt8(ascii: "7"): throw error(.octal, at: escape)
    case UInt8(ascii: "U"), UInt8(ascii: "u"):
      bytes.append(contentsOf: String(try scalar(escape)).utf8)
    default: bytes.append(Self.escapes[letter] ?? letter)
    }
  }

  private static let escapes = Dictionary(uniqueKeysWithValues: zip("abfnrtv".utf8, [0x07, 0x08, 0x0C, 0x0A, 0x0D, 0x09, 0x0B] as [UInt8]))

  /// The character of `\U` and its digits, with the other half of its pair if it needs one.
  ///
  /// - Parameter escape: the beginning of the escape. The reader is before its digits.
  private mutating func scalar(_ escape: Int) throws(StringsError) -> Unicode.Scalar {
    guard let unit = self.unit() else { throw error(.invalidUnicode, at: escape) }
    if unit == 0 { throw error(.nul, at: escape) }
    if let scalar = Unicode.Scalar(unit) { return scalar }
    guard unit & 0xFC00 == 0xD800, at + 1 < text.count, text[at] == UInt8(ascii: "\\"), text[at + 1] | 0x20 == UInt8(ascii: "u") else {
      throw error(.loneSurrogate, at: escape)
    }
    at += 2
    guard let low = self.unit(), low & 0xFC00 == 0xDC00,
      let scalar = Unicode.Scalar(0x1_0000 + ((unit & 0x3FF) << 10) + (low & 0x3FF))
    else { throw error(.loneSurrogate, at: escape) }
    return scalar
  }

  /// The number of the next hexadecimal digits, at most four; nil if there are none.
  private mutating func unit() -> UInt32? {
    let start = at
    var number: UInt32 = 0
    while at - start < 4, let byte = peek, let digit = Hexadecimal.value(byte) {
      number = number << 4 | UInt32(digit)
      at += 1
    }
    return at == start ? nil : number
  }

  // MARK: Space

  /// Skips white space and comments.
  private mutating func skipSpace() throws(StringsError) {
    while let byte = peek {
      switch byte {
      case 0x09...0x0D, 0x20: at += 1
      case 0xE2 where isSeparator(at): at += 3
      case UInt8(ascii: "/") where at + 1 < text.count && text[at + 1] == UInt8(ascii: "/"):
        while let byte = peek, byte != UInt8(ascii: "\n"), byte != UInt8(ascii: "\r"), !isSeparator(at) { at += 1 }
      case UInt8(ascii: "/") where at + 1 < text.count && text[at + 1] == UInt8(ascii: "*"):
        let start = at
        at += 2
        while at + 1 < text.count, text[at] != UInt8(ascii: "*") || text[at + 1] != UInt8(ascii: "/") { at += 1 }
        guard at + 1 < text.count else { throw error(.unterminatedComment, at: start) }
        at += 2
      default: return
      }
    }
  }

  /// U+2028 and U+2029, the separators of lines and paragraphs.
  private func isSeparator(_ place: Int) -> Bool {
    place + 2 < text.count && text[place] == 0xE2 && text[place + 1] == 0x80 && text[place + 2] & 0xFE == 0xA8
  }
}
