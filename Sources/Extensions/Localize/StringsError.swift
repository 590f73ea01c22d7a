/// Why a `.strings` file cannot be read, and where.
struct StringsError: Error, Equatable, CustomStringConvertible {
  /// A broken rule, as a sentence that says what to do.
  struct Reason: Equatable {
    let rule: String

    private init(_ rule: String) { self.rule = rule }

    /// More than ``StringsFile/fileBytes``.
    static let fileTooLarge = Reason("a file has \(StringsFile.fileBytes) bytes at most: split the application's texts")
    /// More than ``StringsFile/entryCount``.
    static let tooManyEntries = Reason("a file has \(StringsFile.entryCount) entries at most: leave out what no notification names")
    /// More than ``StringsFile/keyBytes``.
    static let keyTooLong = Reason("a key has \(StringsFile.keyBytes) bytes at most")
    /// More than ``StringsFile/valueBytes``.
    static let valueTooLong = Reason("a value has \(StringsFile.valueBytes) bytes at most")
    /// It is a property list in Apple's binary form, as an application's bundle has it.
    static let binaryPropertyList = Reason(
      "this is a compiled file: use the source, or convert it with plutil -convert json and write it as \"key\" = \"value\";")
    /// It is a property list in XML.
    static let xmlPropertyList = Reason("this is a property list in XML: write each entry as \"key\" = \"value\";")
    /// Neither UTF-8, nor UTF-16 after a byte order mark.
    static let invalidEncoding = Reason("the text is in another encoding: save it as UTF-8, or as UTF-16 with a byte order mark")
    /// A NUL, which mostly is UTF-16 without its byte order mark.
    static let nul = Reason("a NUL cannot stand in a text: remove it, or if the file is UTF-16, save it with a byte order mark")
    /// Something else where a key begins.
    static let keyExpected = Reason("a key is expected: write each entry as \"key\" = \"value\";")
    /// Something else where a value begins.
    static let valueExpected = Reason("a value is expected after =: write it in double quotes")
    /// A list, a dictionary or data where a value begins.
    static let valueIsNoString = Reason("a value is a string: lists, dictionaries and data have no place here")
    /// A typographic quotation mark where a key or a value begins.
    static let curlyQuote = Reason("a typographic quotation mark encloses nothing: write straight ones (\")")
    /// Something else where `=` follows a key.
    static let equalsExpected = Reason("= is expected after the key, or ; where the key is the value too")
    /// Something else where `;` ends an entry.
    static let semicolonExpected = Reason("; is expected after the value")
    /// A string without its closing quotation mark.
    static let unterminatedString = Reason("the string that begins here has no closing quotation mark")
    /// A comment without `*/`.
    static let unterminatedComment = Reason("the comment that begins here has no */")
    /// An octal escape, which names a character of the NeXTSTEP set.
    static let octal = Reason("octal escapes are not read: write the character itself")
    /// `\U` without a hexadecimal digit after it.
    static let invalidUnicode = Reason("\\U is followed by one to four hexadecimal digits")
    /// An escaped surrogate (`\UD800` to `\UDFFF`) without its other half.
    static let loneSurrogate = Reason("half of a surrogate pair: write both halves, or the character itself")
    /// The key occurs for the second time.
    static func repeatedKey(firstLine line: Int) -> Reason { Reason("the key stands already in line \(line): keep one of the two") }
  }

  /// The kind of error.
  let reason: Reason
  /// The line, from 1. A line ends with LF, CR, or both.
  let line: Int
  /// The character of the line, from 1.
  let column: Int

  /// Line, column and rule.
  var description: String { "\(line):\(column): \(reason.rule)" }
}
