import EventLoop
import Glibc

/// Standard input, read where it may block: on a thread of its own.
actor DeviceInput {
  nonisolated let thread = EventLoop(name: "device-stdin")
  nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

  /// Gives each line to the session, which is done with it before the next; the thread is never ended, since a read cannot be.
  ///
  /// - Parameter isTyped: whether `TypedLine` edits the lines.
  nonisolated func begin(_ session: DeviceSession, isTyped: Bool, endsAtEOF: Bool) {
    Task(executorPreference: thread) {
      if isTyped { await self.readKeys(session) } else { await self.read(session, endsAtEOF) }
    }
  }

  /// Reads keys until Ctrl-D, or until the terminal is gone.
  private func readKeys(_ session: DeviceSession) async {
    // Where a thread blocks this signal, reading in the background fails, instead of stopping the process until it has the terminal again.
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
