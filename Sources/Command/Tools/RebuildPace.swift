import EventLoop
import Operations
import Synchronization

/// How fast a rebuilding reads, and when the phase that it is in will end.
final class RebuildPace: Sendable {
  private struct State {
    let start: Int64
    var phase = ""
    /// When the phase began.
    var since: Int64
  }

  private let state: Mutex<State>

  /// - Parameter start: when it begins, in steady milliseconds.
  init(start: Int64 = SteadyClock.milliseconds()) { state = Mutex(State(start: start, since: start)) }

  /// How long the rebuilding has taken, in milliseconds.
  func milliseconds(at now: Int64) -> Int64 { state.withLock { now - $0.start } }

  /// What follows the share that was read: `, 17522 records, 8400 a second, about 4 s left`; nothing at a phase's beginning.
  ///
  /// - Parameters:
  ///   - records: those of the phase that were read.
  ///   - read: offsets of the phase that were read.
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
