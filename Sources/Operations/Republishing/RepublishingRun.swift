import EventLoop
package import Kafka
import Synchronization
import Worker

/// The pace of a run that publishes requests again, and whether it writes.
package struct RunSettings: Sendable {
  /// Records per second; nil for no limit.
  package var recordsPerSecond: Int?
  /// The run waits while the workers' group is further behind, in milliseconds; nil for never.
  package var maximumBehind: Int64?
  /// The workers' group.
  package var group = "carillon-transform"
  /// Whether nothing is written.
  package var isDryRun = false
  /// The brokers' limits for writes.
  package var limits = WriteLimits()

  /// Makes settings without limits.
  package init() {}
}

/// Stops a run early. Any thread may do so.
package final class RunStop: Sendable {
  private let isStopped = Mutex(false)

  /// Makes it for one run.
  package init() {}

  /// Ends the run: records that were read are written, and no more are read.
  package func stop() { isStopped.withLock { $0 = true } }

  /// Whether the run must end.
  package var isSet: Bool { isStopped.withLock { $0 } }
}

/// A run that publishes requests again: its writer, its pace and its end.
///
/// A source reads records in this pace, and writes those that it selects: a range of the requests, or dead letters.
final class RepublishingRun: ReadingPace {
  /// Writes the requests; nil in a dry run.
  let writer: Republisher?
  /// The first error. It ends the run.
  private(set) var failure: (any Error)?
  /// Whether the source holds as much as it may.
  var isFull: () -> Bool = { false }
  fileprivate let settings: RunSettings
  fileprivate var isBehind = false
  private let loop: EventLoop
  private let stop: RunStop
  private var rate: TokenBucket?
  fileprivate let timer: Timer
  fileprivate var watching: Task<Void, Never>?

  /// The most bytes in flight, much more than a broker's rate needs.
  private static let maximumBytes = 32 << 20
  /// How often the source saves its progress, and how often the workers' lag is read, in milliseconds.
  fileprivate static let (saveMilliseconds, behindMilliseconds) = (1_000, 500)
  /// How long it waits at the end for Kafka's reports on written records.
  fileprivate static let closeMilliseconds = 65_000

  init(_ tool: ClusterTool, cluster: String, _ settings: RunSettings, _ stop: RunStop) throws(KafkaError) {
    (loop, timer, self.settings, self.stop) = (tool.loop, Timer(on: tool.loop), settings, stop)
    rate = settings.recordsPerSecond.map { TokenBucket(perSecond: $0, burstMilliseconds: 100) }
    let topic = tool.rules.topics.requests
    writer =
      settings.isDryRun
      ? nil
      : try Republisher(
        on: tool.loop, tool.kafka, cluster: cluster, topic: topic, batchBytes: settings.limits.batchBytes(of: topic),
        maximumBytes: 1 << 30)
    writer?.onFailure = { [unowned self] in fail($0) }
  }

  /// Whether it ends early.
  var isStopping: Bool { failure != nil || stop.isSet }

  /// Ends it early with an error.
  func fail(_ error: any Error) { failure = failure ?? error }

  /// Notes a record that was written.
  func wrote() { rate?.spend() }

  /// The most records of a batch. A slow run takes few at once, so that an interruption loses little work.
  var batch: Int { settings.recordsPerSecond.map { min(1_000, max(1, $0 / 20)) } ?? 1_000 }

  func ended(_ partition: TopicPartition) {}
  func waits(_ partition: TopicPartition) -> Bool { false }

  var isHeld: Bool {
    guard !isStopping, let writer else { return false }
    return isBehind || isFull() || writer.bytesInFlight >= Self.maximumBytes || rate?.hasOne(at: loop.milliseconds()) == false
  }
}

extension ClusterTool {
  /// Begins a run: from now on it keeps its pace.
  ///
  /// - Parameters:
  ///   - partitions: those of the requests whose lag it watches.
  ///   - onSecond: called once a second until the run stops.
  func begin(_ run: RepublishingRun, watching partitions: [TopicPartition] = [], onSecond: @escaping () -> Void = {}) {
    run.timer.handler = { [unowned run] in if !run.isStopping { onSecond() } }
    run.timer.start(after: RepublishingRun.saveMilliseconds, repeating: RepublishingRun.saveMilliseconds)
    run.watching = Task { await watchWorkers(run, partitions) }
  }

  /// Ends a run, when Kafka has all that was written.
  func end(_ run: RepublishingRun) async {
    run.watching?.cancel()
    await run.writer?.close(withinMilliseconds: RepublishingRun.closeMilliseconds)
    await run.watching?.value
    run.timer.close()
  }

  private func watchWorkers(_ run: RepublishingRun, _ partitions: [TopicPartition]) async {
    guard let maximum = run.settings.maximumBehind, run.writer != nil, let admin = try? Admin(kafka) else { return }
    let lag = try? GroupLag(on: loop, kafka, group: run.settings.group, admin)
    var waits = false
    while !Task.isCancelled, let lag {
      if let lags = try? await lag.read(partitions) {
        let now = WallClock.milliseconds()
        let behind = lags.map { $0.behind(at: now) }.max() ?? 0
        run.isBehind = behind > maximum
        if run.isBehind != waits {
          let duration = ReadableText.duration(milliseconds: behind)
          onNote(run.isBehind ? "the workers are behind by \(duration): it waits" : "the workers have caught up: it continues")
        }
        waits = run.isBehind
      } else {
        // An unknown lag does not stop the run, since Kafka's own answers do.
        run.isBehind = false
      }
      try? await Task.sleep(for: .milliseconds(RepublishingRun.behindMilliseconds))
    }
    await lag?.close()
    await admin.close()
  }
}
