/// Why a `.strings` file cannot be read, and where.
///
/// A retry is useless: the author has to correct the file.
public struct StringsError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The kinds of errors.
  public enum Reason: Equatable, Sendable {
    /// More than ``StringsFile/fileBytes``.
    case fileTooLarge
    /// More than ``StringsFile/entryCount``.
    case tooManyEntries
    /// More than ``StringsFile/keyBytes``.
    case keyTooLong
    /// More than ``StringsFile/valueBytes``.
    case valueTooLong
    /// It is a property list in Apple's binary form, as an application's bundle has it.
    case binaryPropertyList
    /// It is a property list in XML.
    case xmlPropertyList
    /// Neither UTF-8, nor UTF-16 after a byte order mark.
    case invalidEncoding
    /// A NUL, which mostly is UTF-16 without its byte order mark.
    case nul
    /// Something else where a key begins.
    case keyExpected
    /// Something else where a value begins.
    case valueExpected
    /// A list, a dictionary or data where a value begins.
    case valueIsNoString
    /// A typographic quotation mark where a key or a value begins.
    case curlyQuote
    /// Something else where `=` follows a key.
    case equalsExpected
    /// Something else where `;` ends an entry.
    case semicolonExpected
    /// A string without its closing quotation mark.
    case unterminatedString
    /// A comment without `*/`.
    case unterminatedComment
    /// An octal escape, which names a character of the NeXTSTEP set.
    case octal
    /// `\U` without a hexadecimal digit after it.
    case invalidUnicode
    /// An escaped surrogate (`\UD800` to `\UDFFF`) without its other half.
    case loneSurrogate
    /// The key occurs for the second time.
    case repeatedKey(firstLine: Int)
  }

  /// The kind of error.
  public let reason: Reason
  /// The line, from 1. A line ends with LF, CR, or both.
  public let line: Int
  /// The character of the line, from 1.
  public let column: Int

  /// The broken rule, as a sentence that says what to do.
  public var rule: String {
    switch reason {
    case .fileTooLarge: "a file has \(StringsFile.fileBytes) bytes at most: split the application's texts"
    case .tooManyEntries: "a file has \(StringsFile.entryCount) entries at most: leave out what no notification names"
    case .keyTooLong: "a key has \(StringsFile.keyBytes) bytes at most"
    case .valueTooLong: "a value has \(StringsFile.valueBytes) bytes at most"
    case .binaryPropertyList:
      "this is a compiled file: use the source, or convert it with plutil -convert json and write it as \"key\" = \"value\";"
    case .xmlPropertyList: "this is a property list in XML: write each entry as \"key\" = \"value\";"
    case .invalidEncoding: "the text is in another encoding: save it as UTF-8, or as UTF-16 with a byte order mark"
    case .nul: "a NUL cannot stand in a text: remove it, or if the file is UTF-16, save it with a byte order mark"
    case .keyExpected: "a key is expected: write each entry as \"key\" = \"value\";"
    case .valueExpected: "a value is expected after =: write it in double quotes"
    case .valueIsNoString: "a value is a string: lists, dictionaries and data have no place here"
    case .curlyQuote: "a typographic quotation mark encloses nothing: write straight ones (\")"
    case .equalsExpected: "= is expected after the key, or ; where the key is the value too"
    case .semicolonExpected: "; is expected after the value"
    case .unterminatedString: "the string that begins here has no closing quotation mark"
    case .unterminatedComment: "the comment that begins here has no */"
    case .octal: "octal escapes are not read: write the character itself"
    case .invalidUnicode: "\\U is followed by one to four hexadecimal digits"
    case .loneSurrogate: "half of a surrogate pair: write both halves, or the character itself"
    case .repeatedKey(let first): "the key stands already in line \(first): keep one of the two"
    }
  }

  /// Line, column and rule.
  public var description: String { "\(line):\(column): \(rule)" }
}
