import EventLoop
import Kafka
import Notifications
import Operations
import Synchronization
import Worker

/// Reports on standard error how far a tool has read, if that takes long.
final class ReadingLog: Sendable {
  private let last = Mutex<(what: String, percent: Int64, time: Int64)>(("", -1, 0))
  private static let step: Int64 = 5
  /// After this time it reports again, even without progress.
  private static let silenceMilliseconds: Int64 = 60_000

  /// Runs a task that reads Kafka on a loop of its own, and reports its progress.
  ///
  /// - Parameter name: the loop's.
  /// - Throws: an error of Kafka as one that says what to type; all others unchanged.
  static func with<R>(
    _ kafka: KafkaConfiguration, loop name: String, _ body: (EventLoop, ReadingLog) async throws -> R
  ) async throws -> R {
    let loop = EventLoop(name: name)
    do {
      let result = try await body(loop, ReadingLog())
      await loop.close()
      return result
    } catch let error as KafkaError {
      throw kafka.failure(error)
    }
  }

  /// Runs a tool on a loop of its own, and reports its progress and the records that it ignores.
  static func with<R>(
    _ kafka: KafkaConfiguration, _ rules: RequestRules, loop name: String, _ body: (ClusterTool) async throws -> R
  ) async throws -> R {
    try await with(kafka, loop: name) { loop, log in
      let tool = ClusterTool(on: loop, kafka, rules) {
        log.report($0)
      } onRefused: { place, reason in
        let position = place.position
        StandardError.line("\(place.topic), partition \(position.partition), offset \(position.offset) is ignored: \(reason)")
      } onNote: {
        StandardError.line($0)
      }
      return try await body(tool)
    }
  }

  /// Runs a tool that needs a topic of the given cluster.
  static func with<R>(
    _ values: SettingValues, _ name: String, needing topic: KeyPath<Topics, String>, _ body: (ClusterTool) async throws -> R
  ) async throws -> R {
    let (kafka, topics) = (try ClusterSettings.kafka(values, client: "carillon-\(name)"), ClusterSettings.topics(values))
    let needed = topics[keyPath: topic]
    _ = try await Admin.with(kafka) { try await $0.partitions(of: needed, at: kafka) }
    return try await with(kafka, RequestRules(topics: topics), loop: name, body)
  }

  /// Reports the progress if it is new.
  func report(_ progress: ReadingProgress) { report(progress.what, read: progress.read, of: progress.total) }

  /// Reports the progress if it is new: another step, or more of the same step.
  ///
  /// - Parameters:
  ///   - read: the offsets that were read. They are not records: transactions and compaction leave offsets without one.
  ///   - more: a further text.
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
