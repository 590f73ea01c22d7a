import EventLoop

/// Reads standard input on a thread of its own, where it may block.
actor DeviceInput: LoopActor {
  nonisolated let loop = EventLoop(name: "device-stdin")

  /// Passes each line to the session, which handles it before the next. The thread never ends, since a read cannot be interrupted.
  nonisolated func begin(_ session: DeviceSession, endsAtEOF: Bool) {
    Task(executorPreference: loop) { await self.read(session, endsAtEOF) }
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
