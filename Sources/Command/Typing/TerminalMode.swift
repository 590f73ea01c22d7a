import Glibc
import Synchronization

/// How the terminal hands over what is typed: by lines that it edits itself, or key by key.
enum TerminalMode {
  /// The address of the mode from before; 0 while the terminal edits lines itself.
  private static let former = Atomic<UInt>(0)
  /// The address of the former actions of fatal signals, by their numbers; 0 before they are taken over.
  private static let actions = Atomic<UInt>(0)
  /// Those that end the process at once, and that may come from the terminal, from another process, or from a defect of this one.
  private static let fatalSignals = [SIGHUP, SIGQUIT, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP]

  /// Whether a person types at this process, on a terminal that can draw a row again.
  static var isPossible: Bool {
    isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1 && getenv("TERM").map { String(cString: $0) } != "dumb"
  }

  /// Whether the shell has given this process the terminal: from any other, setting the mode would stop the process.
  ///
  /// Of a terminal that is not the process' own there is no answer, and nobody else to take it away.
  static var isForeground: Bool {
    let group = tcgetpgrp(STDIN_FILENO)
    return group < 0 || group == getpgrp()
  }

  /// Has each key handed over at once and not shown; false where that cannot be.
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
    // Otherwise a shell may have changed it while the process was stopped.
    mode.c_lflag &= ~tcflag_t(ICANON | ECHO | IEXTEN)
    mode.c_iflag &= ~tcflag_t(IXON)
    mode.c_iflag |= tcflag_t(ICRNL)
    withUnsafeMutableBytes(of: &mode.c_cc) { keys in
      keys[Int(VMIN)] = 1
      keys[Int(VTIME)] = 0
    }
    return tcsetattr(STDIN_FILENO, TCSANOW, &mode) == 0
  }

  /// Gives the terminal its mode back; nothing happens where it was not changed. A signal handler may call it.
  static func leave() {
    // The memory is given up: a handler may be reading it.
    let address = former.exchange(0, ordering: .acquiringAndReleasing)
    guard let mode = UnsafePointer<termios>(bitPattern: address), isForeground else { return }
    tcsetattr(STDIN_FILENO, TCSANOW, mode)
  }

  /// Has the mode given back before a signal ends the process.
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
        // What would have happened without this handler happens as soon as it returns.
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
