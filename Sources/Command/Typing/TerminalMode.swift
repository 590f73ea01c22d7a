import Glibc
import Synchronization

/// The terminal's mode: it edits lines itself, or sends each key.
enum TerminalMode {
  /// The address of the former mode; 0 while the terminal edits lines itself.
  private static let former = Atomic<UInt>(0)
  /// The address of the former actions of fatal signals, by number; 0 before they are replaced.
  private static let actions = Atomic<UInt>(0)
  /// Signals that end the process at once, from the terminal, another process, or a defect of this one.
  private static let fatalSignals = [SIGHUP, SIGQUIT, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP]

  /// Whether a person types on a terminal that can redraw a row.
  static var isPossible: Bool {
    isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1 && getenv("TERM").map { String(cString: $0) } != "dumb"
  }

  /// Whether the process is in the terminal's foreground. In the background, setting the mode would stop the process.
  ///
  /// If the terminal is not the process's own, there is no answer, and no other process can own it.
  static var isForeground: Bool {
    let group = tcgetpgrp(STDIN_FILENO)
    return group < 0 || group == getpgrp()
  }

  /// Makes the terminal send each key without an echo; false if that is impossible.
  ///
  /// Ctrl-C, Ctrl-Z and Ctrl-\ are still signals.
  static func enter() -> Bool {
    guard isForeground else { return false }
    takeOverFatalSignals()
    var mode = termios()
    guard tcgetattr(STDIN_FILENO, &mode) == 0 else { return false }
    if former.load(ordering: .acquiring) == 0 {
      let saved = UnsafeMutablePointer<termios>.allocate(capacity: 1)
      saved.initialize(to: mode)
      former.store(UInt(bitPattern: saved), ordering: .releasing)
    }
    // Set again, since a shell may have changed it while the process was stopped.
    mode.c_lflag &= ~tcflag_t(ICANON | ECHO | IEXTEN)
    mode.c_iflag &= ~tcflag_t(IXON)
    mode.c_iflag |= tcflag_t(ICRNL)
    withUnsafeMutableBytes(of: &mode.c_cc) { keys in
      keys[Int(VMIN)] = 1
      keys[Int(VTIME)] = 0
    }
    return tcsetattr(STDIN_FILENO, TCSANOW, &mode) == 0
  }

  /// Restores the terminal's mode, if it was changed. A signal handler may call it.
  static func leave() {
    // The memory is never freed, since a handler may be reading it.
    let address = former.exchange(0, ordering: .acquiringAndReleasing)
    guard let mode = UnsafePointer<termios>(bitPattern: address), isForeground else { return }
    tcsetattr(STDIN_FILENO, TCSANOW, mode)
  }

  /// Restores the mode before a signal ends the process.
  private static func takeOverFatalSignals() {
    guard actions.load(ordering: .acquiring) == 0 else { return }
    let saved = UnsafeMutablePointer<sigaction>.allocate(capacity: 65)
    saved.initialize(repeating: sigaction(), count: 65)
    actions.store(UInt(bitPattern: saved), ordering: .releasing)
    for signal in fatalSignals {
      guard sigaction(signal, nil, saved + Int(signal)) == 0, !isIgnored(saved[Int(signal)]) else { continue }
      var action = sigaction()
      action.__sigaction_handler.sa_handler = { signal in
        TerminalMode.leave()
        guard let actions = UnsafePointer<sigaction>(bitPattern: TerminalMode.actions.load(ordering: .acquiring)) else { return }
        // The default action follows as soon as the handler returns.
        sigaction(signal, actions + Int(signal), nil)
        raise(signal)
      }
      action.sa_flags = SA_ONSTACK
      sigaction(signal, &action, nil)
    }
  }

  private static func isIgnored(_ action: sigaction) -> Bool {
    unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self)
  }
}
