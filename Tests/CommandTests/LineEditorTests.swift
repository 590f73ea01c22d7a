import TestSupport
import Testing

@testable import Command

/// The line that is typed at a device.
@Suite struct LineEditorTests {
  /// What a key sends, in all its ways.
  private static let bytes: [(key: Key, texts: [String])] = [
    (.enter, ["\r", "\n"]), (.left, ["\u{1B}[D", "\u{1B}OD", "\u{2}"]), (.right, ["\u{1B}[C", "\u{1B}OC", "\u{6}"]),
    (.home, ["\u{1}", "\u{1B}[H", "\u{1B}OH", "\u{1B}[1~", "\u{1B}[7~"]),
    (.end, ["\u{5}", "\u{1B}[F", "\u{1B}OF", "\u{1B}[4~", "\u{1B}[8~"]), (.up, ["\u{1B}[A", "\u{1B}OA", "\u{10}"]),
    (.down, ["\u{1B}[B", "\u{1B}OB", "\u{E}"]), (.backspace, ["\u{7F}", "\u{8}"]), (.delete, ["\u{1B}[3~"]),
    (.deleteWord, ["\u{17}", "\u{1B}\u{7F}"]), (.deleteToStart, ["\u{15}"]), (.deleteToEnd, ["\u{B}"]), (.endOfInput, ["\u{4}"]),
    (.wordLeft, ["\u{1B}b", "\u{1B}[1;5D", "\u{1B}[1;3D"]), (.wordRight, ["\u{1B}f", "\u{1B}[1;5C"]), (.redraw, ["\u{C}"]),
  ]

  @Test func `every key is known by what terminals send for it, and nothing else is a key`() {
    func keys(_ bytes: [UInt8]) -> [Key] {
      var reader = KeyReader()
      return bytes.compactMap { reader.take($0) }
    }
    for (key, texts) in Self.bytes { for text in texts { #expect(keys(Array(text.utf8)) == [key], "\(text.debugDescription)") } }
    #expect(keys(Array("aü汉🙂".utf8)) == ["a", "ü", "汉", "🙂"].map { .character($0) })
    // Function keys, a mouse, a long sequence, controls, and bytes that are not UTF-8.
    for unknown in [
      "\u{1B}[15~", "\u{1B}OP", "\u{1B}[<0;1;1M", "\u{1B}[" + String(repeating: "1;", count: 99) + "R", "\u{0}\u{9}\u{1F}", "\u{85}",
    ] {
      #expect(keys(Array(unknown.utf8) + [0x61]) == [.character("a")], "\(unknown.debugDescription)")
    }
    #expect(keys([0xFF, 0xC3, 0x61, 0xE2, 0x82, 0x62, 0xED, 0xA0, 0x80, 0x63]) == ["a", "b", "c"].map { .character($0) })
  }

  /// An editor as simple as it can be: an array and a place in it.
  private struct Model {
    var text: [Character] = []
    var cursor = 0
    var history: [String] = []
    var place = 0
    var draft: [Character] = []

    mutating func press(_ key: Key) -> LineEditor.Outcome {
      func isSpace(_ index: Int) -> Bool { text[index].isWhitespace }
      var word = cursor
      while word > 0, isSpace(word - 1) { word -= 1 }
      while word > 0, !isSpace(word - 1) { word -= 1 }
      switch key {
      case .character(let scalar):
        text.insert(Character(scalar), at: cursor)
        cursor += 1
      case .enter:
        let line = String(text)
        if !line.allSatisfy(\.isWhitespace), history.last != line { history.append(line) }
        (text, cursor, place, draft) = ([], 0, history.count, [])
        return .line(line)
      case .left: cursor = max(cursor - 1, 0)
      case .right: cursor = min(cursor + 1, text.count)
      case .wordLeft: cursor = word
      case .wordRight:
        while cursor < text.count, isSpace(cursor) { cursor += 1 }
        while cursor < text.count, !isSpace(cursor) { cursor += 1 }
      case .home: cursor = 0
      case .end: cursor = text.count
      case .up, .down:
        let new = place + (key == .up ? -1 : 1)
        guard new >= 0, new <= history.count else { break }
        if place == history.count { draft = text }
        place = new
        text = new == history.count ? draft : Array(history[new])
        cursor = text.count
      case .backspace where cursor > 0:
        cursor -= 1
        text.remove(at: cursor)
      case .deleteWord:
        text.removeSubrange(word..<cursor)
        cursor = word
      case .deleteToStart:
        text.removeFirst(cursor)
        cursor = 0
      case .deleteToEnd: text.removeSubrange(cursor...)
      case .endOfInput where text.isEmpty: return .endOfInput
      case .delete where cursor < text.count, .endOfInput where cursor < text.count: text.remove(at: cursor)
      case .backspace, .delete, .endOfInput, .redraw: break
      }
      return .edited
    }
  }

  @Test func `any keys in any order leave what a simple editor has`() {
    var random = SeededRandom(seed: 11)
    let letters: [Unicode.Scalar] = ["a", "b", " ", "ü", "汉", "🙂"]
    for round in 0..<300 {
      var (editor, reader, model) = (LineEditor(), KeyReader(), Model())
      for step in 0..<Int.random(in: 1...120, using: &random) {
        let (key, text): (Key, String)
        if Bool.random(using: &random), let letter = letters.randomElement(using: &random) {
          (key, text) = (.character(letter), String(Character(letter)))
        } else {
          let sent = Self.bytes[Int.random(in: 0..<Self.bytes.count, using: &random)]
          (key, text) = (sent.key, sent.texts.randomElement(using: &random) ?? "")
        }
        let outcomes = text.utf8.compactMap { reader.take($0) }.map { editor.press($0) }
        let wanted = model.press(key)
        guard outcomes == [wanted], editor.before == String(model.text[..<model.cursor]),
          editor.after == String(model.text[model.cursor...])
        else {
          Issue.record("round \(round), step \(step), \(key): \(outcomes) '\(editor.before)|\(editor.after)', wanted \(wanted) \(model)")
          return
        }
      }
    }
  }

  @Test func `a character of several scalars is moved over and deleted as one`() {
    var editor = LineEditor()
    for scalar in "ae\u{301}👨‍👩‍👧b".unicodeScalars { _ = editor.press(.character(scalar)) }
    _ = editor.press(.left)
    #expect(editor.after == "b")
    _ = editor.press(.backspace)
    #expect(editor.before == "ae\u{301}")
    _ = editor.press(.left)
    #expect(editor.before == "a")
  }

  @Test func `lines and their history have bounds`() {
    var editor = LineEditor()
    for _ in 0..<(LineEditor.maximumBytes * 2) { _ = editor.press(.character("ü")) }
    #expect(editor.text.utf8.count == LineEditor.maximumBytes)
    _ = editor.press(.enter)
    for number in 0..<(LineEditor.maximumHistory + 10) {
      for scalar in "\(number)".unicodeScalars { _ = editor.press(.character(scalar)) }
      _ = editor.press(.enter)
    }
    for _ in 0..<(LineEditor.maximumHistory * 2) { _ = editor.press(.up) }
    #expect(editor.text == "10")
  }

  /// Whatever the line has, the row is drawn in one row, with the cursor in it.
  @Test func `a row never wraps, and nothing in it is obeyed by a terminal`() {
    var random = SeededRandom(seed: 12)
    let scalars: [Unicode.Scalar] = ["a", " ", "汉", "🙂", "\u{301}", "\u{202E}", "\u{9B}", "\u{200B}", "e"]
    for _ in 0..<2_000 {
      var editor = LineEditor()
      let width = Int.random(in: 1...40, using: &random)
      for _ in 0..<Int.random(in: 0...60, using: &random) {
        _ = editor.press(Bool.random(using: &random) ? .character(scalars.randomElement(using: &random) ?? "a") : .left)
      }
      var screen = Screen(width: max(width, 6))
      screen.take(TypedRow.drawn(editor, width: max(width, 6)))
      #expect(screen.rows.count == 1 && screen.column < screen.width, "\(editor)")
      #expect(!screen.rows[0].unicodeScalars.contains { ["\u{202E}", "\u{9B}", "\u{200B}"].contains($0) })
    }
  }

  @Test func `a long line shows the part around the cursor`() {
    var editor = LineEditor()
    for scalar in "0123456789abcdefghijklmnopqrstuvwxyz".unicodeScalars { _ = editor.press(.character(scalar)) }
    var screen = Screen(width: 20)
    screen.take(TypedRow.drawn(editor, width: 20))
    #expect(screen.rows == ["> jklmnopqrstuvwxyz"] && screen.column == 19)
    _ = editor.press(.home)
    screen.take(TypedRow.drawn(editor, width: 20))
    #expect(screen.rows == ["> 0123456789abcdefg"] && screen.column == 2)
  }
}

/// What a terminal shows of what it is sent.
struct Screen {
  let width: Int
  /// Each without the spaces at its end.
  var rows: [String] { cells.map { String($0.joined().reversed().drop { $0 == " " }.reversed()) } }
  /// Where the cursor is in the last row.
  private(set) var column = 0
  private var cells: [[String]] = [[]]

  init(width: Int) { self.width = width }

  /// Takes text, of which `\n` also goes to the beginning of the row.
  mutating func take(_ text: String) {
    var rest = text.unicodeScalars[...]
    while let scalar = rest.popFirst() {
      switch scalar {
      case "\n":
        cells.append([])
        column = 0
      case "\r": column = 0
      case "\u{1B}":
        rest.removeFirst()
        let parameters = String(String.UnicodeScalarView(rest.prefix { $0.value < 0x40 }))
        rest = rest.dropFirst(parameters.count)
        switch rest.popFirst() {
        case "K": cells[cells.count - 1] = Array(cells[cells.count - 1].prefix(column))
        case "C": column += Int(parameters) ?? 1
        default: break
        }
      default: put(scalar)
      }
    }
  }

  private mutating func put(_ scalar: Unicode.Scalar) {
    let isWide = scalar == "汉" || scalar == "🙂"
    if scalar == "\u{301}" { return }
    if column + (isWide ? 2 : 1) > width {
      cells.append([])
      column = 0
    }
    var row = cells[cells.count - 1]
    while row.count < column + (isWide ? 2 : 1) { row.append(" ") }
    row[column] = String(Character(scalar))
    if isWide { row[column + 1] = "" }
    cells[cells.count - 1] = row
    column += isWide ? 2 : 1
  }
}
