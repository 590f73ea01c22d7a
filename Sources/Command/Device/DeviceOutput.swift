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
  /// How many bytes may wait for the reader before the device ends.
  static let maximumBytes = 32 << 20

  private struct State {
    /// What the thread has not taken yet.
    var bytes: [UInt8] = []
    /// How many bytes are not written.
    var unwritten = 0
    var isWriting = false
    var isFull = false
    /// Resumed when all bytes are written.
    var waiting: [CheckedContinuation<Void, Never>] = []
  }

  // It never ends, since a write cannot be interrupted.
  private let thread = EventLoop(name: "device-stdout")
  private let state = Mutex(State())

  /// Whether lines were dropped, since too many bytes waited for the reader.
  var isFull: Bool { state.withLock(\.isFull) }

  /// How many bytes the reader has not taken.
  var unwritten: Int { state.withLock(\.unwritten) }

  /// Writes text and the end of a line soon.
  func line(_ text: String) {
    let begins = state.withLock { state in
      state.isFull = state.isFull || state.unwritten > Self.maximumBytes
      guard !state.isFull else { return false }
      let former = state.bytes.count
      state.bytes.append(contentsOf: text.utf8)
      state.bytes.append(UInt8(ascii: "\n"))
      state.unwritten += state.bytes.count - former
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
        if state.unwritten > bytes { state.waiting.append(continuation) }
        return state.unwritten > bytes
      }
      if !waits { continuation.resume() }
    }
  }

  /// Lets all calls of `waitForReader` return.
  func stopWaiting() {
    let waiting = state.withLock { state in
      defer { state.waiting = [] }
      return state.waiting
    }
    for continuation in waiting { continuation.resume() }
  }

  /// Writes until nothing is left; on the thread.
  private func write() {
    var written = 0
    while true {
      let bytes = state.withLock { state in
        state.unwritten -= written
        defer { state.bytes = [] }
        state.isWriting = !state.bytes.isEmpty
        return state.bytes
      }
      guard !bytes.isEmpty else { return stopWaiting() }
      StandardOutput.writeUnbuffered(bytes)
      written = bytes.count
    }
  }
}
