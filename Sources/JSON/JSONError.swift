/// Why a text cannot be read as the JSON that was asked for, and where.
///
/// No retry helps: the same bytes give the same answer. The text of the error names offsets only, never content.
public struct JSONError: Error, Equatable, Sendable, CustomStringConvertible {
  /// What was found.
  public enum Reason: UInt8, Sendable {
    /// The text ends inside a value, or before one.
    case truncated
    /// A byte that RFC 8259 does not allow at this place; a byte order mark and NUL are among them.
    case unexpectedByte
    /// A byte below U+0020 stands unescaped in a string.
    case controlCharacter
    /// A backslash with something after it that is no escape.
    case invalidEscape
    /// An escaped surrogate (`\uD800` to `\uDFFF`) without its other half.
    case loneSurrogate
    /// A string's bytes are not UTF-8.
    case invalidUTF8
    /// A number with a leading zero, without digits, or with something that no number has.
    case invalidNumber
    /// More containers inside one another than the scanner's limit.
    case tooDeep
    /// Something follows the text's one value.
    case trailingBytes
    /// The value here is valid so far, but it is not an object.
    case notAnObject
    /// The value here is valid so far, but it is not an array.
    case notAnArray
    /// The caller asked for something that cannot stand at this place, like a key inside an array.
    case misplacedCall
  }

  /// What was found.
  public let reason: Reason
  /// Where, in bytes from the beginning of the text.
  public let offset: Int

  /// An error of a reader that builds on the scanner.
  public init(reason: Reason, offset: Int) {
    self.reason = reason
    self.offset = offset
  }

  /// Always false: the bytes have to change first.
  public var isRetriable: Bool { false }

  /// What is wrong, where, and what to write instead.
  public var description: String {
    let text =
      switch reason {
      case .truncated: "the text ends too early; send it whole"
      case .unexpectedByte: "unexpected byte; the text must be JSON by RFC 8259, without a byte order mark"
      case .controlCharacter: "unescaped control character in a string; write it as \\u00XX"
      case .invalidEscape: "unknown escape in a string; allowed are \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX"
      case .loneSurrogate: "half of a surrogate pair; write both halves, or the character itself in UTF-8"
      case .invalidUTF8: "a string is not UTF-8; encode the text in UTF-8"
      case .invalidNumber: "not a number by RFC 8259; no leading zero or plus, and digits around the point"
      case .tooDeep: "too many objects and arrays inside one another; flatten the value"
      case .trailingBytes: "something follows the value; send exactly one value"
      case .notAnObject: "an object is expected here"
      case .notAnArray: "an array is expected here"
      case .misplacedCall: "the reader asked for what cannot stand here; correct the calling code"
      }
    return "JSON, byte \(offset): \(text)"
  }
}
