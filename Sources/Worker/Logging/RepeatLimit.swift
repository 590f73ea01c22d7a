/// Limits a repeating log message. It admits the first of an interval and counts the rest.
///
/// A value without a clock: the caller gives the time.
struct RepeatLimit {
  /// What identifies a message. The program has few messages and components, so they bound the table. Kinds are unbounded: beyond the
  /// table's limit no message is limited.
  struct Key: Hashable, Sendable {
    let message: String
    let component: String
    let kind: String
  }

  /// The number of lines that were not written since the interval began.
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
  ///   - burst: the most lines of one message in an interval.
  ///   - interval: in milliseconds.
  init(burst: Int, interval: Int64) {
    self.burst = burst
    self.interval = interval
  }

  /// Whether to write a line now, in milliseconds of a monotonic clock.
  mutating func admits(_ key: Key, _ level: LogLevel, at now: Int64) -> Bool {
    guard var window = windows[key] else {
      if windows.count < Self.bound { windows[key] = Window(began: now, shown: 1, notShown: 0, level: level) }
      return true
    }
    // An ended interval with unwritten lines waits for its summary, which starts the next.
    if now - window.began >= interval && window.notShown == 0 { window = Window(began: now, shown: 0, notShown: 0, level: level) }
    let isShown = window.shown < burst
    if isShown { window.shown += 1 } else { window.notShown += 1 }
    windows[key] = window
    return isShown
  }

  /// Ends the intervals that are over, and answers what each did not write.
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
