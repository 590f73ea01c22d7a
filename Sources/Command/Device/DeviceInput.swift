import EventLoop

/// Standard input, read where it may block: on a thread of its own.
actor DeviceInput {
  nonisolated let thread = EventLoop(name: "device-stdin")
  nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

  /// Gives each line to the session, which is done with it before the next; the thread is never ended, since a read cannot be.
  nonisolated func begin(_ session: DeviceSession, endsAtEOF: Bool) {
    Task(executorPreference: thread) { await self.read(session, endsAtEOF) }
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
