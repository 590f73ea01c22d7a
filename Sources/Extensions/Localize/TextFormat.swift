/// A localised text with places for arguments, which are strings: `%@` takes the next one, `%2$@` the second, and `%%` is a percent sign.
///
/// Other conversions of `printf` do not apply, since the arguments of a notification are strings. They stay in the text unchanged, and
/// `problem` reports them to the author. An argument is never read as a format itself.
struct TextFormat: Equatable {
  /// The highest number of a place, as in `%99$@`.
  static let positions = 99

  /// The source text.
  let text: String

  /// Makes a format; any text is valid.
  init(_ text: String) { self.text = text }

  /// The text with the arguments in their places. Arguments without a place are left out.
  ///
  /// - Parameter limit: the most bytes of the result, in UTF-8.
  func filled(with arguments: [String], limit: Int) throws(TextFormatError) -> String {
    let bytes = Array(text.utf8)
    var result: [UInt8] = []
    var next = 0
    var at = 0
    while at < bytes.count {
      guard bytes[at] == Self.percent else {
        let end = bytes[at...].firstIndex(of: Self.percent) ?? bytes.count
        result.append(contentsOf: bytes[at..<end])
        at = end
        continue
      }
      let (conversion, length) = Self.conversion(bytes, at)
      switch conversion {
      case .percent, .unknown: result.append(Self.percent)
      case .next:
        next += 1
        result.append(contentsOf: try Self.argument(next, of: arguments).utf8)
      case .position(let position): result.append(contentsOf: try Self.argument(position, of: arguments).utf8)
      }
      // Checked at each place, so that a text with a thousand places cannot grow a thousandfold before it is refused.
      guard result.count <= limit else { throw .tooLong(limit: limit) }
      at += length
    }
    guard result.count <= limit else { throw .tooLong(limit: limit) }
    return String(decoding: result, as: UTF8.self)
  }

  /// The error of the format as a sentence that says what to do; nil if all its percent signs are valid.
  var problem: String? {
    let bytes = Array(text.utf8)
    var (takesNext, takesPosition) = (false, false)
    var at = 0
    while let place = bytes[at...].firstIndex(of: Self.percent) {
      let (conversion, length) = Self.conversion(bytes, place)
      switch conversion {
      case .percent: break
      case .next: takesNext = true
      case .position: takesPosition = true
      case .unknown:
        return "\(Self.shown(bytes, place)) takes no argument: write %@ or %1$@ for one, which is a string, and %% for a percent sign"
      }
      at = place + length
    }
    return takesNext && takesPosition ? "%@ and %1$@ stand in one text: number all places, or none" : nil
  }

  private static func argument(_ position: Int, of arguments: [String]) throws(TextFormatError) -> String {
    guard position <= arguments.count else { throw .missingArgument(position, given: arguments.count) }
    return arguments[position - 1]
  }

  // MARK: Conversions

  private enum Conversion {
    case percent
    case next
    case position(Int)
    /// Only the percent sign is read, so the following text stays unchanged.
    case unknown
  }

  private static let percent = UInt8(ascii: "%")

  /// The conversion at a percent sign, and the number of its bytes.
  private static func conversion(_ bytes: [UInt8], _ start: Int) -> (Conversion, length: Int) {
    var at = start + 1
    guard at < bytes.count else { return (.unknown, 1) }
    if bytes[at] == percent { return (.percent, 2) }
    if bytes[at] == UInt8(ascii: "@") { return (.next, 2) }
    var position = 0
    while at < bytes.count, bytes[at].isDigit, position <= positions {
      position = position * 10 + Int(bytes[at] - UInt8(ascii: "0"))
      at += 1
    }
    guard 1...positions ~= position, at + 1 < bytes.count, bytes[at] == UInt8(ascii: "$"), bytes[at + 1] == UInt8(ascii: "@") else {
      return (.unknown, 1)
    }
    return (.position(position), at + 2 - start)
  }

  /// A percent sign with the characters that `printf` would read after it.
  private static func shown(_ bytes: [UInt8], _ start: Int) -> String {
    let modifiers = bytes[(start + 1)...].prefix(12).prefix { "-+ #'0123456789$.*hlLqjzt".utf8.contains($0) }
    let letter = bytes[modifiers.endIndex...].prefix(1).filter { $0 == UInt8(ascii: "@") || $0.isLetter }
    return String(decoding: bytes[start..<modifiers.endIndex] + letter, as: UTF8.self)
  }
}

/// Why a format cannot be filled with its arguments: the missing argument, or the limit. A retry is useless.
struct TextFormatError: Error, Equatable, CustomStringConvertible {
  let description: String

  /// The format takes an argument that was not given, counted from 1.
  static func missingArgument(_ position: Int, given: Int) -> TextFormatError {
    TextFormatError(description: "the text takes an argument number \(position), and the notification has \(given)")
  }

  /// The filled text has too many bytes.
  static func tooLong(limit: Int) -> TextFormatError {
    TextFormatError(description: "the text with its arguments is longer than \(limit) bytes")
  }
}
