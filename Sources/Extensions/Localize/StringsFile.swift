public import Notifications

/// A file of localised texts in Apple's `.strings` format: entries of the form `"key" = "value";`.
///
/// It is read as CoreFoundation reads an old-style property list that is a dictionary of strings without its braces: quotation marks may be
/// left out around letters, digits and `_$/:.-`, they may be single ones, `"key";` is short for a key that is its own value, and comments
/// are `/* … */` and `// …`. What differs helps authors: `\u` is the same as `\U`, and errors are keys that stand
/// twice, escapes that name no character, and whatever stands at the end without being an entry, such as a comment that is not closed.
public struct StringsFile: Sendable, Equatable {
  /// A localised text.
  public struct Entry: Sendable, Equatable {
    /// The text, escapes resolved.
    public let value: String
    /// The line on which its key stands, from 1.
    public let line: Int
  }

  /// Bytes of a file at most.
  public static var fileBytes: Int { 4 << 20 }
  /// Entries of a file at most.
  public static var entryCount: Int { 50_000 }
  /// Bytes of a key at most, in UTF-8 without escapes.
  public static var keyBytes: Int { 1 << 10 }
  /// Bytes of a value at most, in UTF-8 without escapes.
  public static var valueBytes: Int { 16 << 10 }

  /// The texts by their keys, which are compared byte by byte.
  public let entries: [Name: Entry]

  /// Reads a file: UTF-8 with or without a byte order mark, or UTF-16 with one.
  public init(_ bytes: [UInt8]) throws(StringsError) {
    guard bytes.count <= Self.fileBytes else { throw StringsError(reason: .fileTooLarge, line: 1, column: 1) }
    var reader = StringsReader(try StringsText.decode(bytes))
    entries = try reader.entries()
  }
}
