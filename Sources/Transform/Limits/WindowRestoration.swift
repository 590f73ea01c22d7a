import EventLoop
import Kafka
import Worker

/// Counts the records of the last window below a partition's marker, before the partition's first record begins.
///
/// A former owner has judged these records, and how it counted is not known. A window is at most ten seconds long. So this reads from the
/// first record on that is at most ten seconds older than the one below the marker. All records before it are older than each window
/// that the following ones may be in.
final class WindowRestoration {
  private let lane: LaneContext
  private let rates: RateLimits
  private let checkpoints: Checkpoints
  private let admin: Admin
  private let reader: TopicReader
  private var isClosed = false
  private(set) var isUnderWay = false
  weak var owner: TransformCore?

  private static let retryMilliseconds = 1_000
  /// How long Kafka may send nothing of what it has, in milliseconds.
  private static let silenceMilliseconds = 30_000
  /// How many offsets below a marker without a timestamp are read first.
  private static let firstReach: Int64 = 1_000

  init(_ lane: LaneContext, _ rates: RateLimits, _ checkpoints: Checkpoints, _ admin: Admin) {
    (self.lane, self.rates, self.checkpoints, self.admin) = (lane, rates, checkpoints, admin)
    reader = TopicReader(on: lane.loop, lane.settings.kafka, silenceMilliseconds: Self.silenceMilliseconds)
    reader.onClientError = { [logger = lane.logger] in logger.warning("Kafka client error", ["error": "\($0)"]) }
  }

  /// Counts for all partitions that wait.
  func run() async {
    guard !isUnderWay else { return }
    isUnderWay = true
    defer { isUnderWay = false }
    while !isClosed, case let waiting = rates.unrestored, !waiting.isEmpty {
      do throws(KafkaError) {
        let counters = try await count(waiting)
        var restored: Set<Int> = []
        for (partition, counter) in zip(waiting, counters) where rates.restored(partition, counter) { restored.insert(partition.index) }
        owner?.windowsRestored(restored)
      } catch {
        guard !isClosed else { return }
        lane.logger.warning("the requests of the last window cannot be counted; their partitions wait", ["error": "\(error)"])
        lane.health.set("limits", ready: false, "partitions wait until the requests of their last window are counted: \(error)")
        await lane.loop.sleep(milliseconds: Self.retryMilliseconds)
      }
    }
    lane.health.remove("limits")
  }

  /// Stops counting.
  func close() {
    isClosed = true
    reader.close()
  }

  /// A counter for each of these partitions, which has counted the records below the marker.
  private func count(_ waiting: [AssignedPartition]) async throws(KafkaError) -> [RateCounter] {
    let ranges = try await ranges(of: waiting)
    var counters: [Int32: RateCounter] = [:]
    try await read(ranges) { [rates] in _ = rates.count($0, in: &counters[$0.partition, default: RateCounter()]) }
    return waiting.map { counters[$0.topicPartition.partition] ?? RateCounter() }
  }

  /// The offsets to count, by partition.
  private func ranges(of waiting: [AssignedPartition]) async throws(KafkaError) -> [Int32: Range<Int64>] {
    var markers: [TopicPartition: (offset: Int64, timestamp: Int64)] = [:]
    for partition in waiting {
      guard let marker = checkpoints.table.wanted(partition.index) else { continue }
      // Later records of so early a time would begin new windows.
      if marker.timestamp >= 0, rates.end <= marker.timestamp - RateCounter.maximumStepBack { continue }
      markers[partition.topicPartition] = marker
    }
    guard !markers.isEmpty else { return [:] }
    let logs = try await admin.ends(of: Array(markers.keys))
    // It finds no offsets by time. It keeps few records, too.
    let isEmbedded = try await admin.isEmbeddedBroker()
    var (ranges, times): ([Int32: Range<Int64>], [TopicPartition: Int64]) = ([:], [:])
    for (partition, marker) in markers {
      guard let log = logs[partition] else { continue }
      let below = log.clamped(to: log.lowerBound..<max(marker.offset, log.lowerBound))
      ranges[partition.partition] = below
      guard !isEmbedded, !below.isEmpty else { continue }
      guard let last = marker.timestamp >= 0 ? marker.timestamp : try await lastTimestamp(of: partition, below) else {
        // No record below the marker can be read.
        ranges[partition.partition] = nil
        continue
      }
      times[partition] = max(0, last - RateCounter.historyMilliseconds)
    }
    for (partition, first) in try await admin.offsets(at: times) {
      guard let below = ranges[partition.partition] else { continue }
      ranges[partition.partition] = min(max(first, below.lowerBound), below.upperBound)..<below.upperBound
    }
    return ranges
  }

  /// The timestamp of the last record below a marker that has none; nil if there is no record.
  private func lastTimestamp(of partition: TopicPartition, _ below: Range<Int64>) async throws(KafkaError) -> Int64? {
    var (found, from, reach): (Int64?, Int64, Int64) = (nil, below.upperBound, Self.firstReach)
    while found == nil, from > below.lowerBound {
      let end = from
      from = max(below.lowerBound, end - reach)
      reach *= 16
      try await read([partition.partition: from..<end]) { if $0.timestamp >= 0 { found = $0.timestamp } }
    }
    return found
  }

  private func read(_ ranges: [Int32: Range<Int64>], _ body: @escaping (RecordView) -> Void) async throws(KafkaError) {
    let topic = lane.settings.topics.requests
    guard !isClosed else { throw KafkaError(.closed, "read \(topic)") }
    let stretches = ranges.map { TopicStretch(TopicPartition(topic, $0.key), $0.value.lowerBound, $0.value.upperBound) }
    try await reader.read(stretches, topic, body)
  }
}
