import Notifications

/// A localised text with places for arguments, which are strings: `%@` takes the next one, `%2$@` the second, and `%%` is a percent sign.
///
/// Other conversions of `printf` do not apply, since the arguments of a notification are strings. They stay in the text unchanged. An
/// argument is never read as a format itself.
struct TextFormat: Equatable {
  /// The highest number of a place, as in `%99$@`.
  static let positions = 99

  /// The source text.
  let text: String

  /// Makes a format; any text is valid.
  init(_ text: String) { self.text = text }

  /// The text with the arguments in their places. Arguments without a place are left out.
  ///
  /// - Parameters:
  ///   - limit: the most bytes of the result, in UTF-8.
  ///   - field: the member that names the text, for errors.
  func filled(with arguments: [String], limit: Int, field: String) throws(FieldError) -> String {
    let bytes = Array(text.utf8)
    var result: [UInt8] = []
    var next = 0
    var at = 0
    while at < bytes.count {
      if bytes[at] != Self.percent {
        let end = bytes[at...].firstIndex(of: Self.percent) ?? bytes.count
        result.append(contentsOf: bytes[at..<end])
        at = end
      } else if let (given, length) = Self.place(bytes, at) {
        if given == nil { next += 1 }
        let position = given ?? next
        guard position <= arguments.count else {
          throw FieldError(
            field: field, rule: "the text takes an argument number \(position), and the notification has \(arguments.count)")
        }
        result.append(contentsOf: arguments[position - 1].utf8)
        at += length
      } else {
        result.append(Self.percent)
        at += bytes[(at + 1)...].first == Self.percent ? 2 : 1
      }
      // Checked at each place, so that a text with a thousand places cannot grow a thousandfold before it is refused.
      guard result.count <= limit else {
        throw FieldError(field: field, rule: "the text with its arguments is longer than \(limit) bytes")
      }
    }
    return String(decoding: result, as: UTF8.self)
  }

  private static let percent = UInt8(ascii: "%")

  /// The place of an argument that begins at a percent sign: its number, nil for the next one, and its length; nil if there is none.
  private static func place(_ bytes: [UInt8], _ start: Int) -> (position: Int?, length: Int)? {
    var at = start + 1
    var position: Int?
    while at < bytes.count, bytes[at].isDigit, position ?? 0 <= positions {
      position = (position ?? 0) * 10 + Int(bytes[at] - UInt8(ascii: "0"))
      at += 1
    }
    if let position {
      guard 1...positions ~= position, at < bytes.count, bytes[at] == UInt8(ascii: "$") else { return nil }
      at += 1
    }
    return at < bytes.count && bytes[at] == UInt8(ascii: "@") ? (position, at + 1 - start) : nil
  }
}
