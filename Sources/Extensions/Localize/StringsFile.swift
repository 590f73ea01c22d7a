import Notifications

/// A file of localised texts in Apple's `.strings` format: entries of the form `"key" = "value";`.
///
/// It is read like CoreFoundation's old-style property list: a dictionary of strings without its braces. Quotation marks may be single, or
/// missing around letters, digits and `_$/:.-`. `"key";` is short for a key that is its own value, and comments are `/* … */` and `// …`.
/// Some differences help authors. `\u` is the same as `\U`. Repeated keys, octal escapes, escapes without a character, and an incomplete
/// end, such as an open comment, are errors.
struct StringsFile: Sendable, Equatable {
  /// A localised text.
  struct Entry: Sendable, Equatable {
    /// The text after its escapes are replaced.
    let value: String
    /// The line of its key, from 1.
    let line: Int
  }

  /// The most bytes of a file.
  static let fileBytes = 4 << 20
  /// The most entries of a file.
  static let entryCount = 50_000
  /// The most bytes of a key, in UTF-8 without escapes.
  static let keyBytes = 1 << 10
  /// The most bytes of a value, in UTF-8 without escapes.
  static let valueBytes = 16 << 10

  /// The texts by their keys, which are compared byte by byte.
  let entries: [Name: Entry]

  /// Reads a file: UTF-8 with or without a byte order mark, or UTF-16 with one.
  init(_ bytes: [UInt8]) throws(StringsError) {
    guard bytes.count <= Self.fileBytes else { throw StringsError(reason: .fileTooLarge, line: 1, column: 1) }
    var reader = StringsReader(try StringsText.decode(bytes))
    entries = try reader.entries()
  }
}
