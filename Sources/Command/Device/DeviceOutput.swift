import EventLoop
import JSON
import Synchronization

/// The lines of `carillon device`, which a thread of its own writes: a reader that reads nothing must not hold up the device.
///
/// An instruction waits for the reader; an event cannot. Used from any thread.
final class DeviceOutput: Sendable {
  /// How many bytes may wait for the reader before the next instruction waits, too.
  private static let instructionBytes = 1 << 20
  /// How many bytes may wait for the reader. Later lines are dropped, and the device ends.
  private static let maximumBytes = 32 << 20

  // It never ends, since a write cannot be interrupted.
  private let thread = EventLoop(name: "device-stdout")
  /// How many bytes are not written, and how many were dropped. Once one is, all later ones are.
  private let counts = Mutex((unwritten: 0, dropped: 0))

  /// Whether lines were dropped, since too many bytes waited for the reader.
  var isFull: Bool { counts.withLock { $0.dropped > 0 } }

  /// Whether the reader has taken all lines but those that were dropped.
  var isWritten: Bool { counts.withLock { $0.unwritten == 0 } }

  /// How many bytes the reader has not taken, with those that were dropped.
  var lost: Int { counts.withLock { $0.unwritten + $0.dropped } }

  /// Writes text and the end of a line soon.
  func line(_ text: String) {
    let bytes = Array((text + "\n").utf8)
    let fits = counts.withLock { counts in
      let fits = counts.dropped == 0 && counts.unwritten + bytes.count <= Self.maximumBytes
      if fits { counts.unwritten += bytes.count } else { counts.dropped += bytes.count }
      return fits
    }
    guard fits else { return }
    thread.execute {
      StandardOutput.writeUnbuffered(bytes[...])
      self.counts.withLock { $0.unwritten -= bytes.count }
    }
  }

  /// Writes a JSON object and the end of a line soon, without control characters for a terminal.
  func json(_ text: String) { line(PrintedJSON.text(text)) }

  /// Returns when the reader has taken the lines, if too many bytes of them wait.
  func waitForReader() async {
    guard counts.withLock({ $0.unwritten > Self.instructionBytes }) else { return }
    await withCheckedContinuation { continuation in thread.execute { continuation.resume() } }
  }
}
