import EventLoop
import Operations
import Synchronization

/// The rate of a rebuild, and the estimated end of its present phase.
final class RebuildPace: Sendable {
  private struct State {
    let start: Int64
    var phase = ""
    /// The phase's beginning.
    var since: Int64
  }

  private let state: Mutex<State>

  /// - Parameter start: its beginning, in steady milliseconds.
  init(start: Int64 = SteadyClock.milliseconds()) { state = Mutex(State(start: start, since: start)) }

  /// The duration of the rebuild so far, in milliseconds.
  func milliseconds(at now: Int64) -> Int64 { state.withLock { now - $0.start } }

  /// The text after the percentage, `, 17522 records, 8400 a second, about 4 s left`; empty at a phase's beginning.
  ///
  /// - Parameters:
  ///   - records: the phase's records that were read.
  ///   - read: the phase's offsets that were read.
  func words(_ phase: String, _ records: Int64, read: Int64, of total: Int64, at now: Int64) -> String {
    let passed = state.withLock { state in
      if state.phase != phase { (state.phase, state.since) = (phase, now) }
      return now - state.since
    }
    guard passed > 0, read > 0 else { return "" }
    let left = Double(passed) * Double(total - read) / Double(read)
    let seconds = Int64(saturating: (left / 1_000).rounded(.up))
    return
      ", \(TerminalText.count(records, "record")), \(Int64(saturating: Double(records) * 1_000 / Double(passed))) a second"
      + (seconds > 0
        ? ", about \(TerminalText.duration(seconds.multipliedReportingOverflow(by: 1_000).overflow ? .max : seconds * 1_000)) left" : "")
  }
}
