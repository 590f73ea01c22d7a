/// Why a text cannot be read as the requested JSON, and where.
///
/// A retry cannot help: the same bytes give the same error. The error's text names offsets, never content.
public struct JSONError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The kind of fault.
  public enum Reason: UInt8, Sendable {
    /// The text ends inside a value, or before one.
    case truncated
    /// A byte that RFC 8259 does not allow here. A byte order mark and NUL are such bytes.
    case unexpectedByte
    /// A string has an unescaped byte below U+0020.
    case controlCharacter
    /// A backslash is not followed by an escape.
    case invalidEscape
    /// An escaped surrogate (`\uD800` to `\uDFFF`) without its other half.
    case loneSurrogate
    /// A string's bytes are not UTF-8.
    case invalidUTF8
    /// A number has a leading zero, no digits, or characters that no number has.
    case invalidNumber
    /// The nesting is deeper than the scanner's limit.
    case tooDeep
    /// Bytes follow the text's only value.
    case trailingBytes
    /// The value is valid so far, but is not an object.
    case notAnObject
    /// The value is valid so far, but is not an array.
    case notAnArray
    /// The caller asked for something impossible here, such as a key in an array.
    case misplacedCall
  }

  /// The kind of fault.
  public let reason: Reason
  /// The offset in bytes from the beginning of the text.
  public let offset: Int

  /// Creates an error for a reader that uses the scanner.
  public init(reason: Reason, offset: Int) {
    self.reason = reason
    self.offset = offset
  }

  /// The fault, its offset, and what to write instead.
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
