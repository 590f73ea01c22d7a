import EventLoop
import JSON
import Synchronization
import Worker

/// The lines of `carillon device`, which a thread of its own writes: a reader that reads nothing must not hold up the device.
///
/// An instruction waits for the reader; an event cannot. Used from any thread.
final class DeviceOutput: Sendable {
  /// How many bytes may wait for the reader before the next instruction waits, too.
  static let instructionBytes = 1 << 20
  /// How many bytes may wait for the reader. Later lines are dropped, and the device ends.
  static let maximumBytes = 32 << 20
  /// How many bytes are written at once.
  private static let pieceBytes = 1 << 16

  private struct State {
    /// What the thread has not taken yet.
    var bytes: [UInt8] = []
    /// How many bytes are not written.
    var unwritten = 0
    /// How many bytes were dropped. Once one is, all later ones are.
    var dropped = 0
    var isWriting = false
    /// Each is resumed when no more than so many bytes are unwritten.
    var waiting: [(bytes: Int, continuation: CheckedContinuation<Void, Never>)] = []
  }

  // It never ends, since a write cannot be interrupted.
  private let thread = EventLoop(name: "device-stdout")
  private let state = Mutex(State())

  /// Whether lines were dropped, since too many bytes waited for the reader.
  var isFull: Bool { state.withLock { $0.dropped > 0 } }

  /// How many bytes the reader has not taken, with those that were dropped.
  var lost: Int { state.withLock { $0.unwritten + $0.dropped } }

  /// Writes text and the end of a line soon.
  func line(_ text: String) {
    let begins = state.withLock { state in
      let count = text.utf8.count + 1
      guard state.dropped == 0, state.unwritten + count <= Self.maximumBytes else {
        state.dropped += count
        return false
      }
      state.bytes.append(contentsOf: text.utf8)
      state.bytes.append(UInt8(ascii: "\n"))
      state.unwritten += count
      defer { state.isWriting = true }
      return !state.isWriting
    }
    if begins { thread.execute { self.write() } }
  }

  /// Writes a JSON object and the end of a line soon, without control characters for a terminal.
  func json(_ text: String) { line(PrintedJSON.text(text)) }

  /// Returns when no more than so many bytes wait for the reader, or after `stopWaiting`.
  func waitForReader(bytes: Int) async {
    await withCheckedContinuation { continuation in
      let waits = state.withLock { state in
        if state.unwritten > bytes { state.waiting.append((bytes, continuation)) }
        return state.unwritten > bytes
      }
      if !waits { continuation.resume() }
    }
  }

  /// Lets all calls of `waitForReader` return.
  func stopWaiting() { resume { _ in true } }

  /// Writes until nothing is left; on the thread.
  private func write() {
    while true {
      let bytes = state.withLock { state in
        defer { state.bytes = [] }
        state.isWriting = !state.bytes.isEmpty
        return state.bytes
      }
      guard !bytes.isEmpty else { return }
      for start in stride(from: 0, to: bytes.count, by: Self.pieceBytes) {
        let piece = bytes[start..<min(start + Self.pieceBytes, bytes.count)]
        StandardOutput.writeUnbuffered(piece)
        resume { state in
          state.unwritten -= piece.count
          return false
        }
      }
    }
  }

  /// Changes the state, and resumes those that wait for no more bytes; all of them if `change` returns true.
  private func resume(after change: (inout State) -> Bool) {
    let ready = state.withLock { state in
      let isForAll = change(&state)
      let ready = state.waiting.filter { isForAll || state.unwritten <= $0.bytes }
      state.waiting.removeAll { isForAll || state.unwritten <= $0.bytes }
      return ready
    }
    for waiting in ready { waiting.continuation.resume() }
  }
}
