import EventLoop
import Glibc

/// Why a process must end.
enum Ending: Sendable {
  /// A signal asked it to.
  case signal(Int32)
  /// It cannot do its work, and another attempt cannot fix that.
  case failure(any Error)
}

/// SIGTERM and SIGINT, and SIGHUP of a closed terminal unless it reloads. The first signal ends the process in order, a second at once.
actor StopSignals: LoopActor {
  nonisolated let loop: EventLoop
  private var watches: [SignalWatch] = []
  private var ending: Ending?
  private var hasSignal = false
  private var waiting: [CheckedContinuation<Ending, Never>] = []

  /// Whether the process had a terminal, whose end sends a SIGHUP too, and is not to outlive it.
  private let hadTerminal = StopSignals.isDefault(SIGHUP) && StopSignals.hasTerminal

  init(on loop: EventLoop) { self.loop = loop }

  /// Starts to handle the signals.
  ///
  /// - Parameter reload: the action of SIGHUP while the terminal exists, if there was one. With nil, SIGHUP ends the process unless it is
  ///   ignored.
  func watch(reload: (@Sendable () -> Void)? = nil) throws {
    if let reload {
      let watch = try SignalWatch(on: loop, signal: SIGHUP) { [self] in
        assumeIsolated { $0.hadTerminal && !Self.hasTerminal ? $0.received(SIGHUP) : reload() }
      }
      watches.append(watch)
    }
    for number in [SIGTERM, SIGINT] + (reload == nil && Self.isDefault(SIGHUP) ? [SIGHUP] : []) {
      // They are watched until the process has ended, and keep this actor alive.
      watches.append(try SignalWatch(on: loop, signal: number) { [self] in assumeIsolated { $0.received(number) } })
    }
  }

  /// Whether the process has a terminal now, wherever its input comes from.
  private static var hasTerminal: Bool {
    let terminal = open("/dev/tty", O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
    if terminal >= 0 { close(terminal) }
    return terminal >= 0
  }

  /// Whether the signal has its default action: `nohup` ignores it.
  private static func isDefault(_ number: Int32) -> Bool {
    var action = sigaction()
    return sigaction(number, nil, &action) == 0 && action.__sigaction_handler.sa_handler == nil
  }

  /// Waits for the first of them, or for a failure.
  func ending() async -> Ending {
    await withCheckedContinuation { continuation in
      // Checked inside, since the loop may turn between a check and an await, and an early signal would be lost.
      if let ending { continuation.resume(returning: ending) } else { waiting.append(continuation) }
    }
  }

  /// Ends the process in order because of a failure. Later reasons have no effect.
  func end(_ ending: Ending) {
    guard self.ending == nil else { return }
    self.ending = ending
    for continuation in waiting { continuation.resume(returning: ending) }
    waiting = []
  }

  private func received(_ number: Int32) {
    // The first signal has no effect if a failure already ends the process.
    guard !hasSignal else {
      // Another thread may wait for the reader of a full pipe.
      StandardError.lineIfRead("ended at once by a second signal")
      // Nothing of the process runs any more, not even lanes in the middle of their work.
      _exit(128 + number)
    }
    hasSignal = true
    end(.signal(number))
  }
}
