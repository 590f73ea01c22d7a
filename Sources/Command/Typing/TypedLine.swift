import Glibc
import Synchronization

/// The line that a person is typing, below all printed text. Used from any thread.
///
/// `StandardOutput` and `StandardError` print above it.
enum TypedLine {
  private enum Phase {
    /// Nothing is typed, or the terminal edits lines itself.
    case closed
    /// The process was stopped, or does not have the terminal.
    case suspended
    case open
  }

  private struct State {
    var phase = Phase.closed
    var keys = KeyReader()
    var editor = LineEditor()
    /// Whether the row is on the terminal.
    var isDrawn = false
    /// Whether the last printed text ended its line.
    var isAtLineStart = true
  }

  private static let state = Mutex(State())
  /// Keeps texts apart that are printed while there is no line.
  private static let withoutLine = Mutex(())

  /// Begins if a person types on a terminal; otherwise false.
  static func begin() -> Bool {
    guard TerminalMode.isPossible else { return false }
    state.withLock { state in
      state.phase = TerminalMode.enter() ? .open : .suspended
      draw(&state)
    }
    return true
  }

  /// Releases the terminal, and leaves the typed text on it. Allowed in any phase.
  static func end() {
    let ended: Void? = state.withLockIfAvailable { state in
      rest(&state)
      state.phase = .closed
    }
    // A thread prints to a terminal that does not take it.
    if ended == nil { TerminalMode.leave() }
  }

  /// Takes bytes of the terminal; returns their results except edits.
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
  ///   - endsLine: whether the printed text ends with the end of a line.
  ///   - mayTakeLong: whether the reader may not read. Then others print beside it, if there is no line.
  ///   - print: writes to the terminal or elsewhere, without printing more.
  static func above<R>(endsLine: Bool, mayTakeLong: Bool = false, _ print: () -> R) -> R {
    let printed = state.withLock { state -> R? in
      guard state.phase == .open else { return nil }
      if state.isDrawn { write(TypedRow.erased) }
      state.isDrawn = false
      let result = print()
      state.isAtLineStart = endsLine
      draw(&state)
      return result
    }
    if let printed { return printed }
    return mayTakeLong ? print() : withoutLine.withLock { _ in print() }
  }

  /// Stops the process, so that the person gets the shell, until `SIGCONT`, which calls `resume`.
  static func suspend() {
    guard canBeContinued else { return }
    state.withLock { state in
      rest(&state)
      if state.phase == .open { state.phase = .suspended }
    }
    // This thread may run on for a moment, so the rest must come with the signal that continues the process.
    kill(getpid(), SIGSTOP)
  }

  /// Whether there is a shell that could continue the process.
  private static var canBeContinued: Bool {
    // The first process of a container has none.
    let parent = getppid()
    return parent > 0 && getsid(parent) == getsid(0)
  }

  /// Continues after the process was stopped, by whatever caused the stop.
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

  /// Leaves the typed text above, as a terminal does that edits lines itself.
  private static func leaveRow(_ state: inout State) {
    guard state.phase == .open, state.isDrawn else { return }
    write(TypedRow.erased + TypedRow.left(state.editor) + "\n")
    state.isDrawn = false
  }

  /// Leaves the row and restores the terminal's mode.
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
