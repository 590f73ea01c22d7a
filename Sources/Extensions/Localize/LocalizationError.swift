/// Why the texts of an application cannot be used, and which file must be corrected.
public struct LocalizationError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The file or folder.
  public let file: String
  /// The line, from 1; nil if the error concerns the whole file.
  public let line: Int?
  /// The character of the line, from 1; nil if the error concerns the whole line.
  public let column: Int?
  /// The broken rule, as a sentence that says what to do.
  public let rule: String

  /// An error of a file.
  public init(file: String, line: Int? = nil, column: Int? = nil, rule: String) {
    (self.file, self.line, self.column, self.rule) = (file, line, column, rule)
  }

  /// File, line, column and rule: `texts/de.lproj/Localizable.strings:12:5: ; is expected after the value`.
  public var description: String {
    let place = [line, column].compactMap { $0.map(String.init) }.joined(separator: ":")
    return place.isEmpty ? "\(file): \(rule)" : "\(file):\(place): \(rule)"
  }
}
