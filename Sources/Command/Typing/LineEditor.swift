/// A line that is being typed, and the lines before it: a value.
///
/// The cursor moves by what a person sees as one character.
struct LineEditor {
  /// What a key has led to.
  enum Outcome: Equatable {
    /// The line may look different now.
    case edited
    /// The line is complete, and the next one is empty.
    case line(String)
    /// Nothing more is typed.
    case endOfInput
  }

  /// What stands before the cursor.
  private(set) var before = ""
  /// What stands behind the cursor.
  private(set) var after = ""
  private var history: [String] = []
  /// Which line of the history is shown; that after the last one is the new line.
  private var place = 0
  /// The new line, while one of the history is shown.
  private var draft = ""

  /// The longest line, in bytes: longer than any text that a response may have.
  static let maximumBytes = 16 << 10
  /// Lines that are kept at most.
  static let maximumHistory = 500

  /// The whole line.
  var text: String { before + after }

  /// Does what a key asks for.
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
