/// Keeps one message that comes again and again from filling the log: the first of an interval pass, the rest are counted.
///
/// A value without a clock: the caller gives the time, and writes what it is told to.
struct RepeatLimit {
  /// What one message is told by. The program's messages and components are few, so the table is bounded by them; `kinds` are not,
  /// and beyond the table's bound nothing is limited.
  struct Key: Hashable, Sendable {
    let message: String
    let component: String
    let kind: String
  }

  /// So many lines were not written since the interval began.
  struct Summary: Sendable, Hashable {
    let key: Key
    let level: LogLevel
    let notShown: Int
    let milliseconds: Int64
  }

  private struct Window {
    var began: Int64
    var shown: Int
    var notShown: Int
    var level: LogLevel
  }

  private static let bound = 1024
  private let burst: Int
  private let interval: Int64
  private var windows: [Key: Window] = [:]

  /// - Parameters:
  ///   - burst: how many lines of one message are written in an interval.
  ///   - interval: in milliseconds.
  init(burst: Int, interval: Int64) {
    self.burst = burst
    self.interval = interval
  }

  /// Whether a line is to be written at `now` milliseconds of a clock that only goes forward.
  mutating func admits(_ key: Key, _ level: LogLevel, at now: Int64) -> Bool {
    guard var window = windows[key] else {
      if windows.count < Self.bound { windows[key] = Window(began: now, shown: 1, notShown: 0, level: level) }
      return true
    }
    // One that has ended with lines not shown waits for its summary, which begins the next.
    if now - window.began >= interval && window.notShown == 0 { window = Window(began: now, shown: 0, notShown: 0, level: level) }
    let isShown = window.shown < burst
    if isShown { window.shown += 1 } else { window.notShown += 1 }
    windows[key] = window
    return isShown
  }

  /// Ends the intervals that are over at `now`, and says of each what it kept back.
  mutating func summaries(at now: Int64) -> [Summary] {
    var summaries: [Summary] = []
    for (key, window) in windows where now - window.began >= interval {
      windows[key] = nil
      if window.notShown > 0 {
        summaries.append(Summary(key: key, level: window.level, notShown: window.notShown, milliseconds: now - window.began))
      }
    }
    return summaries
  }
}
