import EventLoop
import JSON
import Synchronization

/// Writes the log of the whole process, on a thread of its own.
///
/// Lines wait in a bounded queue. If the reader of the log is too slow, further lines are dropped and counted, and the number is logged
/// later. If a message repeats, only the first lines of ten seconds are written, and the rest are counted. So logging never delays a lane.
public final class LogWriter: Sendable {
  private struct Queue {
    var items: [LogLine] = []
    var limit: RepeatLimit
    /// Dropped lines that were not reported yet.
    var unreportedDrops = 0
    var isAsleep = false
    var isClosed = false
  }

  /// The lowest level that is written.
  let level: LogLevel
  private let format: LogFormat
  private let descriptor: Int32
  private let bound: Int
  private let queue: Mutex<Queue>
  private let wake = Semaphore()
  private let ended = Semaphore()
  private let drops = Atomic<Int>(0)

  /// The longest sleep of the writer in milliseconds, so that a summary comes soon after its interval.
  private static let longestSleep = 1000

  /// Starts the writer's thread.
  ///
  /// - Parameters:
  ///   - level: the lowest level that is written.
  ///   - format: the format of lines.
  ///   - descriptor: where to write, by default standard error. The caller keeps it open until `close`.
  ///   - bound: the most lines that wait.
  ///   - repeats: the most lines of one message in an interval. Lines of the level debug are not limited.
  ///   - interval: the length of that interval.
  public init(
    level: LogLevel = .info, format: LogFormat = .text, descriptor: Int32 = 2, bound: Int = 4096, repeats: Int = 20,
    interval: Duration = .seconds(10)
  ) {
    self.level = level
    self.format = format
    self.descriptor = descriptor
    self.bound = bound
    queue = Mutex(Queue(limit: RepeatLimit(burst: repeats, interval: Int64(interval.wholeMilliseconds))))
    NamedThread.start("log") { [self] in main() }
  }

  /// The number of lines dropped since the start because the queue was full.
  public var dropped: Int { drops.load(ordering: .relaxed) }

  /// Writes all earlier lines, and ends the thread. Later lines are dropped. It blocks like `flush(within:)`.
  ///
  /// - Returns: false if the time was over first. Then the thread may still write, so do not close the descriptor.
  @discardableResult public func close(within time: Duration = .seconds(2)) -> Bool {
    let isOpen = queue.withLock { queue in
      defer { queue.isClosed = true }
      return !queue.isClosed
    }
    guard isOpen else { return true }
    wake.signal()
    return ended.wait(milliseconds: time.wholeMilliseconds)
  }

  /// Takes a line, from any thread.
  func submit(_ line: LogLine) {
    let key = RepeatLimit.Key(message: line.message, component: line.component, kind: line.kind)
    let now = SteadyClock.milliseconds()
    let mustWake = queue.withLock { queue in
      if queue.isClosed {
        drops.wrappingAdd(1, ordering: .relaxed)
        return false
      }
      guard line.level == .debug || !line.isLimited || queue.limit.admits(key, line.level, at: now) else { return false }
      if queue.items.count >= bound {
        queue.unreportedDrops += 1
        drops.wrappingAdd(1, ordering: .relaxed)
        return false
      }
      queue.items.append(line)
      defer { queue.isAsleep = false }
      return queue.isAsleep
    }
    if mustWake { wake.signal() }
  }

  private func main() {
    while true {
      let (items, drops, summaries, isClosed) = queue.withLock { queue in
        defer {
          queue.items.removeAll(keepingCapacity: true)
          queue.unreportedDrops = 0
          queue.isAsleep = true
        }
        return (queue.items, queue.unreportedDrops, queue.limit.summaries(at: SteadyClock.milliseconds()), queue.isClosed)
      }
      write(items, drops, summaries)
      if isClosed {
        ended.signal()
        return
      }
      wake.wait(milliseconds: Self.longestSleep)
    }
  }

  private func write(_ items: [LogLine], _ drops: Int, _ summaries: [RepeatLimit.Summary]) {
    var text = ""
    for line in items {
      text += format.render(line)
      if text.utf8.count > 65_536 {
        put(text)
        text.removeAll(keepingCapacity: true)
      }
    }
    func add(_ level: LogLevel, _ component: String, _ message: String, _ fields: [(name: String, value: any JSONRepresentable)]) {
      let now = WallClock.milliseconds()
      text += format.render(
        LogLine(time: now, level: level, component: component, message: message, kind: "", fields: fields))
    }
    if drops > 0 { add(.warning, "log", "log lines dropped, because they are read too slowly", [("lines", drops)]) }
    for summary in summaries {
      let fields: [(name: String, value: any JSONRepresentable)] = [
        ("kind", summary.key.kind), ("notShown", summary.notShown), ("withinMs", summary.milliseconds),
      ]
      add(summary.level, summary.key.component, summary.key.message, summary.key.kind.isEmpty ? Array(fields.dropFirst()) : fields)
    }
    put(text)
  }

  /// Writes a text. If that fails, the text is lost, since there is nowhere to report it.
  private func put(_ text: String) {
    var text = text
    text.withUTF8 { _ = Descriptor.write(UnsafeRawBufferPointer($0), to: descriptor) }
  }
}
