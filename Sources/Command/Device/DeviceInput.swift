import EventLoop
import Glibc

/// Reads standard input on a thread of its own, where it may block.
actor DeviceInput {
  nonisolated let thread = EventLoop(name: "device-stdin")
  nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

  /// Passes each line to the session, which handles it before the next. The thread never ends, since a read cannot be interrupted.
  ///
  /// - Parameter isTyped: whether `TypedLine` edits the lines.
  nonisolated func begin(_ session: DeviceSession, isTyped: Bool, endsAtEOF: Bool) {
    Task(executorPreference: thread) {
      if isTyped { await self.readKeys(session) } else { await self.read(session, endsAtEOF) }
    }
  }

  /// Reads keys until Ctrl-D, or until the terminal is gone.
  private func readKeys(_ session: DeviceSession) async {
    // If a thread blocks this signal, a read in the background fails. Otherwise the signal would stop the process.
    var signals = sigset_t()
    sigemptyset(&signals)
    sigaddset(&signals, SIGTTIN)
    pthread_sigmask(SIG_UNBLOCK, &signals, nil)
    var bytes: [UInt8] = []
    while Descriptor.read(STDIN_FILENO, into: &bytes, limit: 4096) > 0 {
      for outcome in TypedLine.take(bytes) {
        guard case .line(let line) = outcome else { return await session.inputEnded() }
        await session.perform(line: line)
      }
      bytes.removeAll(keepingCapacity: true)
    }
    await session.inputEnded()
  }

  private func read(_ session: DeviceSession, _ endsAtEOF: Bool) async {
    do throws(Failure) {
      var reader = try LineReader(path: "-")
      var lines: [String] = []
      while try reader.next({ _, line in lines.append(line.map { String(decoding: $0, as: UTF8.self) } ?? "") }) {
        for line in lines { await session.perform(line: line) }
        lines.removeAll()
      }
    } catch {
      StandardError.line(error.description)
    }
    if endsAtEOF { await session.inputEnded() }
  }
}
