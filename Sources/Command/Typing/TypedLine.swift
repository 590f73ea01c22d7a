import Glibc
import Synchronization

/// The line that a person is typing, below everything that is printed. From any thread.
///
/// What is printed meanwhile goes above it: `StandardOutput` and `StandardError` ask for that.
enum TypedLine {
  private enum Phase {
    /// Nothing is typed, or the terminal edits lines itself.
    case closed
    /// The process has been stopped, or has not got the terminal.
    case suspended
    case open
  }

  private struct State {
    var phase = Phase.closed
    var keys = KeyReader()
    var editor = LineEditor()
    /// Whether the row is on the terminal.
    var isDrawn = false
    /// Whether what was printed last ended its line.
    var isAtLineStart = true
  }

  private static let state = Mutex(State())

  /// Begins where a person types at a terminal; false where not.
  static func begin() -> Bool {
    guard TerminalMode.isPossible else { return false }
    state.withLock { state in
      state.phase = TerminalMode.enter() ? .open : .suspended
      draw(&state)
    }
    return true
  }

  /// Gives the terminal back, the typed text left where it is. It may be called in any phase.
  static func end() {
    state.withLock { state in
      rest(&state)
      state.phase = .closed
    }
  }

  /// Takes bytes of the terminal; answers what they lead to, but for edits.
  static func take(_ bytes: [UInt8]) -> [LineEditor.Outcome] {
    state.withLock { state in
      guard state.phase != .closed else { return [] }
      var outcomes: [LineEditor.Outcome] = []
      for byte in bytes {
        guard let key = state.keys.take(byte) else { continue }
        if key == .enter { leaveRow(&state) }
        let outcome = state.editor.press(key)
        if outcome != .edited { outcomes.append(outcome) }
      }
      draw(&state)
      return outcomes
    }
  }

  /// Prints above the line.
  ///
  /// - Parameters:
  ///   - endsLine: whether what is printed ends with the end of a line.
  ///   - print: writes to the terminal, or elsewhere, and prints nothing more.
  static func above<R>(endsLine: Bool, _ print: () -> R) -> R {
    state.withLock { state in
      guard state.phase == .open else { return print() }
      if state.isDrawn { write(TypedRow.erased) }
      state.isDrawn = false
      let result = print()
      state.isAtLineStart = endsLine
      draw(&state)
      return result
    }
  }

  /// The person wants to have the shell back: stops the process until `SIGCONT`, which is `resume`.
  static func suspend() {
    guard canBeContinued else { return }
    state.withLock { state in
      rest(&state)
      if state.phase == .open { state.phase = .suspended }
    }
    // This thread may run on for a moment, so what follows must come with the signal that continues the process.
    kill(getpid(), SIGSTOP)
  }

  /// Whether there is a shell that could continue the process.
  private static var canBeContinued: Bool {
    // The first process of a container has none.
    let parent = getppid()
    return parent > 0 && getsid(parent) == getsid(0)
  }

  /// The process goes on after it was stopped, by whomever.
  static func resume() {
    state.withLock { state in
      guard state.phase != .closed else { return }
      state.isDrawn = false
      guard TerminalMode.enter() else {
        state.phase = .suspended
        return TerminalMode.leave()
      }
      state.phase = .open
      draw(&state)
    }
  }

  // MARK: The row

  private static func draw(_ state: inout State) {
    guard state.phase == .open, state.isAtLineStart else { return }
    write(TypedRow.drawn(state.editor, width: Terminal.width ?? 80))
    state.isDrawn = true
  }

  /// Leaves what was typed above, as a terminal does that edits lines itself.
  private static func leaveRow(_ state: inout State) {
    guard state.phase == .open, state.isDrawn else { return }
    write(TypedRow.erased + TypedRow.left(state.editor) + "\n")
    state.isDrawn = false
  }

  /// Leaves the row and gives the terminal its mode back.
  private static func rest(_ state: inout State) {
    if state.editor.text.isEmpty, state.isDrawn { write(TypedRow.erased) } else { leaveRow(&state) }
    state.isDrawn = false
    TerminalMode.leave()
  }

  private static func write(_ text: String) {
    var text = text
    text.withUTF8 { _ = Descriptor.write(UnsafeRawBufferPointer($0), to: STDOUT_FILENO) }
  }
}
