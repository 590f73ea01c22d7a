/// A line that is being typed, and the lines before it. A value.
///
/// The cursor moves by the characters that a person sees.
struct LineEditor {
  /// The result of a key.
  enum Outcome: Equatable {
    /// The line may look different now.
    case edited
    /// The line is complete, and the next one is empty.
    case line(String)
    /// The input has ended.
    case endOfInput
  }

  /// The text before the cursor.
  private(set) var before = ""
  /// The text after the cursor.
  private(set) var after = ""
  private var history: [String] = []
  /// The shown line of the history; the new line comes after the last one.
  private var place = 0
  /// The new line, while a line of the history is shown.
  private var draft = ""

  /// The longest line in bytes, longer than any text of a response.
  static let maximumBytes = 16 << 10
  /// The most lines of the history.
  static let maximumHistory = 500

  /// The whole line.
  var text: String { before + after }

  /// Does the action of a key.
  mutating func press(_ key: Key) -> Outcome {
    switch key {
    case .character(let scalar): insert(scalar)
    case .enter: return .line(finish())
    case .left: moveLeft()
    case .right: moveRight()
    case .wordLeft:
      while before.last?.isWhitespace == true { moveLeft() }
      while before.last?.isWhitespace == false { moveLeft() }
    case .wordRight:
      while after.first?.isWhitespace == true { moveRight() }
      while after.first?.isWhitespace == false { moveRight() }
    case .home: (before, after) = ("", text)
    case .end: (before, after) = (text, "")
    case .up: show(place - 1)
    case .down: show(place + 1)
    case .backspace: _ = before.popLast()
    case .delete: deleteRight()
    case .deleteWord:
      while before.last?.isWhitespace == true { before.removeLast() }
      while before.last?.isWhitespace == false { before.removeLast() }
    case .deleteToStart: before = ""
    case .deleteToEnd: after = ""
    case .endOfInput:
      if text.isEmpty { return .endOfInput }
      deleteRight()
    case .redraw: break
    }
    return .edited
  }

  private mutating func insert(_ scalar: Unicode.Scalar) {
    guard before.utf8.count + after.utf8.count + UTF8.width(scalar) <= Self.maximumBytes else { return }
    before.unicodeScalars.append(scalar)
  }

  private mutating func moveLeft() {
    if let character = before.popLast() { after = String(character) + after }
  }

  private mutating func moveRight() {
    if let character = after.first {
      after.removeFirst()
      before.append(character)
    }
  }

  private mutating func deleteRight() { if !after.isEmpty { after.removeFirst() } }

  private mutating func finish() -> String {
    let line = text
    let isBlank = line.allSatisfy(\.isWhitespace)
    if !isBlank, history.last.map({ Array($0.utf8) != Array(line.utf8) }) ?? true { history.append(line) }
    if history.count > Self.maximumHistory { history.removeFirst() }
    place = history.count
    (before, after, draft) = ("", "", "")
    return line
  }

  private mutating func show(_ new: Int) {
    guard (0...history.count).contains(new) else { return }
    if place == history.count { draft = text }
    place = new
    (before, after) = (new == history.count ? draft : history[new], "")
  }
}
