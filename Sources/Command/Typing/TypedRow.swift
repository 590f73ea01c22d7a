import JSON

/// The row of the terminal for a typed line. It shows the part of a long line around the cursor.
///
/// One row can be redrawn without knowing where the terminal has wrapped, also after a change of its size.
enum TypedRow {
  private static let prompt = "> "
  /// Erases the row.
  static let erased = "\r\u{1B}[K"

  /// Draws the row again, with the cursor in its position.
  ///
  /// - Parameter width: the terminal's columns.
  static func drawn(_ editor: LineEditor, width: Int) -> String {
    // A character in the last column would move the cursor to the next row.
    let room = max(width - prompt.count - 1, 2)
    let ahead = min(columns(editor.after), room / 4)
    let before = String(fitting(editor.before.reversed(), room - ahead).reversed())
    let after = fitting(Array(editor.after), room - columns(before))
    let cursor = prompt.count + columns(before)
    return "\r" + prompt + shown(before) + shown(String(after)) + "\u{1B}[K\r\u{1B}[\(cursor)C"
  }

  /// The whole line, as it stays on the terminal.
  static func left(_ editor: LineEditor) -> String { prompt + shown(editor.text) }

  /// The first characters that fit into these columns.
  private static func fitting(_ characters: [Character], _ room: Int) -> [Character] {
    var rest = room
    return Array(
      characters.prefix { character in
        rest -= columns(character)
        return rest >= 0
      })
  }

  private static func columns(_ text: String) -> Int { text.reduce(0) { $0 + columns($1) } }

  /// The columns of a character on a terminal.
  private static func columns(_ character: Character) -> Int {
    let scalars = shown(String(character)).unicodeScalars
    guard let first = scalars.first else { return 0 }
    switch first.properties.generalCategory {
    case .nonspacingMark, .enclosingMark: return 0
    default: break
    }
    let isWide = wide.contains { $0.contains(first.value) } || first.properties.isEmojiPresentation || scalars.contains("\u{FE0F}")
    return isWide ? 2 : 1
  }

  /// Blocks of East Asian Width W and F (UAX 11).
  private static let wide: [ClosedRange<UInt32>] = [
    0x1100...0x115F, 0x2E80...0x303E, 0x3041...0xA4CF, 0xA960...0xA97F, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F, 0xFF01...0xFF60,
    0xFFE0...0xFFE6, 0x1F300...0x1F64F, 0x1F680...0x1F6FF, 0x1F900...0x1F9FF, 0x20000...0x3FFFD,
  ]

  /// Pasted text may contain control characters of terminals. The joiner within an emoji is not one.
  private static func shown(_ text: String) -> String {
    String(
      String.UnicodeScalarView(text.unicodeScalars.map { PrintedText.isVisible($0) || $0 == "\u{200D}" ? $0 : "\u{FFFD}" }))
  }
}
