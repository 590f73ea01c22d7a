import EventLoop
import Kafka
import Operations
import Synchronization

/// Reports on standard error how far a tool has read, where that takes long.
final class ReadingLog: Sendable {
  private let last = Mutex<(what: String, percent: Int64, time: Int64)>(("", -1, 0))
  private static let step: Int64 = 5
  /// After so long it is told again however little was read.
  private static let silenceMilliseconds: Int64 = 60_000

  /// Runs what reads Kafka on a loop of its own, with a log of how far it is.
  ///
  /// - Parameters:
  ///   - name: the loop's.
  ///   - wayOn: what goes on where it was when Kafka is lost; nil where it begins again, as what only reads does.
  /// - Throws: an error of Kafka as one that says what to type; all others as they are.
  static func with<R>(
    _ kafka: KafkaConfiguration, loop name: String, wayOn: String? = nil, _ body: (EventLoop, ReadingLog) async throws -> R
  ) async throws -> R {
    let loop = EventLoop(name: name)
    do {
      let result = try await body(loop, ReadingLog())
      await loop.close()
      return result
    } catch let error as KafkaError {
      throw wayOn.map { kafka.failure(error, midway: $0) } ?? kafka.failure(error)
    }
  }

  /// Reports it when it is something new.
  func report(_ progress: ReadingProgress) { report(progress.what, read: progress.read, of: progress.total) }

  /// Reports it when it is something new: something else that is read, or some more of the same.
  ///
  /// - Parameters:
  ///   - read: offsets that were read. They are no records: transactions and compaction leave offsets without one.
  ///   - more: what else there is to say.
  func report(_ what: String, read: Int64, of total: Int64, more: @autoclosure () -> String = "") {
    let percent = total > 0 ? read * 100 / total : 100
    let now = SteadyClock.milliseconds()
    let isNew = last.withLock { last in
      guard
        last.what != what || percent >= last.percent + Self.step || percent < last.percent || now >= last.time + Self.silenceMilliseconds
      else { return false }
      last = (what, percent, now)
      return true
    }
    if isNew { StandardError.line("\(what): \(percent) %\(more())") }
  }
}
