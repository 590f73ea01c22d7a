import EventLoop
import Glibc
import Worker

/// Reports changes of the terminal's size: an actor on a loop.
actor TerminalResizes {
  nonisolated let loop: EventLoop
  nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
  private var signal: SignalWatch?
  private var timer: Timer?
  private var isResized = false
  private var waiting: CheckedContinuation<Void, Never>?

  init(on loop: EventLoop) { self.loop = loop }

  /// Starts to listen, until the process ends.
  func watch() throws {
    signal = try SignalWatch(on: loop, signal: SIGWINCH) { [self] in
      assumeIsolated {
        $0.isResized = true
        $0.wake()
      }
    }
    timer = Timer(on: loop) { [self] in assumeIsolated { $0.wake() } }
  }

  /// Waits for a change of the size; false if there is none before the end.
  func next(before end: ContinuousClock.Instant) async -> Bool {
    let left = (end - .now).wholeMilliseconds
    guard left > 0 else { return false }
    if !isResized {
      timer?.start(after: left)
      await withCheckedContinuation { continuation in
        // Checked here, since other tasks may run between a check and an await.
        if isResized { continuation.resume() } else { waiting = continuation }
      }
      timer?.stop()
    }
    defer { isResized = false }
    return isResized
  }

  private func wake() {
    waiting?.resume()
    waiting = nil
  }
}
