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
  /// - Parameters:
  ///   - name: the loop's.
  ///   - wayOn: how to continue after Kafka is lost; nil for tools that only read, which begin again.
  /// - Throws: an error of Kafka as one that says what to type; all others unchanged.
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

  /// Runs a task with what reads and writes a compacted topic, which must exist.
  ///
  /// - Parameter make: makes it with a loop, and with what gets its progress and the places and reasons of ignored records.
  static func withLedger<Ledger, R>(
    of topic: KeyPath<Topics, String>, _ name: String, _ values: SettingValues,
    _ make: (
      EventLoop, KafkaConfiguration, Topics, @escaping @Sendable (ReadingProgress) -> Void,
      @escaping @Sendable (SourceCoordinates, String) -> Void
    ) -> Ledger,
    _ body: (Ledger) async throws -> R
  ) async throws -> R {
    let (kafka, topics) = (try ClusterSettings.kafka(values, client: "carillon-\(name)"), ClusterSettings.topics(values))
    let topic = topics[keyPath: topic]
    _ = try await Admin.with(kafka) { admin in try await admin.partitions(of: topic, at: kafka) }
    return try await with(kafka, loop: name) { loop, log in
      let ledger = make(loop, kafka, topics, { log.report($0) }) { place, reason in
        let position = place.position
        StandardError.line("\(place.topic), partition \(position.partition), offset \(position.offset) is ignored: \(reason)")
      }
      return try await body(ledger)
    }
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
