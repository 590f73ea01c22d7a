/// Why the texts of an application cannot be used, and which file must be corrected.
struct LocalizationError: Error, Equatable, CustomStringConvertible {
  /// The file or folder.
  let file: String
  /// The line, from 1; nil if the error concerns the whole file.
  var line: Int?
  /// The character of the line, from 1; nil if the error concerns the whole line.
  var column: Int?
  /// The broken rule, as a sentence that says what to do.
  let rule: String

  /// File, line, column and rule: `texts/de.lproj/Localizable.strings:12:5: ; is expected after the value`.
  var description: String { ([file] + [line, column].compactMap { $0.map(String.init) }).joined(separator: ":") + ": \(rule)" }
}
