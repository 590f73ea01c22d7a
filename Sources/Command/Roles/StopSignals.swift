import EventLoop
import Glibc

/// Why a process is to end.
enum Ending: Sendable {
  /// It was asked to.
  case signal(Int32)
  /// It cannot do its work, and trying again does not mend that.
  case failure(any Error)
}

/// SIGTERM, SIGINT and, where nothing is read again by it, a closed terminal's SIGHUP: the first asks the process to end in order, a second ends it at once.
actor StopSignals {
  nonisolated let loop: EventLoop
  nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
  private var watches: [SignalWatch] = []
  private var ending: Ending?
  private var hasSignal = false
  private var waiting: [CheckedContinuation<Ending, Never>] = []

  /// Whether somebody has it run on a terminal, whose end comes as a SIGHUP, too.
  private let hadTerminal = isatty(STDIN_FILENO) == 1

  init(on loop: EventLoop) { self.loop = loop }

  /// Takes the signals over.
  ///
  /// - Parameter reload: what SIGHUP does while the terminal is there, if there was one; nil: it ends the process, unless somebody has it
  ///   ignored.
  func watch(reload: (@Sendable () -> Void)? = nil) throws {
    if let reload {
      let watch = try SignalWatch(on: loop, signal: SIGHUP) { [self] in
        assumeIsolated { $0.hadTerminal && isatty(STDIN_FILENO) != 1 ? $0.received(SIGHUP) : reload() }
      }
      watches.append(watch)
    }
    for number in [SIGTERM, SIGINT] + (reload == nil && Self.isDefault(SIGHUP) ? [SIGHUP] : []) {
      // They are watched to the process' very end, and this with them.
      watches.append(try SignalWatch(on: loop, signal: number) { [self] in assumeIsolated { $0.received(number) } })
    }
  }

  /// Whether nobody has said what the signal does: `nohup` has it ignored.
  private static func isDefault(_ number: Int32) -> Bool {
    var action = sigaction()
    return sigaction(number, nil, &action) == 0 && action.__sigaction_handler.sa_handler == nil
  }

  /// Waits for the first of them, or for a failure.
  func ending() async -> Ending {
    await withCheckedContinuation { continuation in
      // Asked here, for the loop may turn between a question and an await: an early signal would go unheard.
      if let ending { continuation.resume(returning: ending) } else { waiting.append(continuation) }
    }
  }

  /// Ends the process in order because of a failure; what comes after the first reason changes nothing.
  func end(_ ending: Ending) {
    guard self.ending == nil else { return }
    self.ending = ending
    for continuation in waiting { continuation.resume(returning: ending) }
    waiting = []
  }

  private func received(_ number: Int32) {
    // The first one changes nothing where the process is ending already because of a failure.
    guard !hasSignal else {
      StandardError.line("ended at once by a second signal")
      // Nothing of the process is run any more, lanes in the middle of their work included.
      _exit(128 + number)
    }
    hasSignal = true
    end(.signal(number))
  }
}
