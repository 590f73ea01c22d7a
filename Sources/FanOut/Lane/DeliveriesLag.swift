import Synchronization
import Worker

/// How far a lane is behind in its partition of `deliveries`.
///
/// The lane reports once a second; any thread may read. A lane that stands still reports nothing, so a reader then looks up the log's end.
final class DeliveriesLag: Sendable {
  /// The lag of a lane.
  struct Standing: Equatable {
    /// The partition that it reads.
    var partition: Int32
    /// Records that the lane has not taken yet.
    var records: Int64
    /// The age of the oldest of them in milliseconds; 0 if there is none, nil if unknown.
    var milliseconds: Int64?
  }

  private struct Reading {
    let partition: Int32
    let end: @Sendable () -> Int64?
    var next: Int64
    var taken: Int64?
    var toldAt: Int64
    var behind = PartitionBehind()

    mutating func observe(at now: Int64) {
      behind.observe(.init(next: next, end: end() ?? next, finished: taken, now: now))
    }
  }

  private let reading = Mutex<Reading?>(nil)

  /// A lane stands still after this time without a report, in milliseconds.
  static let stillMilliseconds: Int64 = 3_000

  /// Notes that the lane begins to read.
  ///
  /// - Parameters:
  ///   - next: the offset of the first record that the lane takes.
  ///   - end: answers the end of the log, on any thread.
  func begin(partition: Int32, next: Int64, at now: Int64, end: @escaping @Sendable () -> Int64?) {
    var begun = Reading(partition: partition, end: end, next: next, toldAt: now)
    // Reading begins at the end of the log, so the lane takes no older record.
    begun.behind.observe(.init(next: next, end: next, now: now))
    reading.withLock { $0 = begun }
  }

  /// Notes how far the lane has read.
  ///
  /// - Parameters:
  ///   - next: the offset of the first record that the lane has not taken; nil before the first.
  ///   - taken: the timestamp of the last record that it took.
  func told(next: Int64?, taken: Int64?, at now: Int64) {
    reading.withLock {
      guard var standing = $0 else { return }
      (standing.next, standing.taken, standing.toldAt) = (next ?? standing.next, taken, now)
      standing.observe(at: now)
      $0 = standing
    }
  }

  /// Notes that the lane has stopped reading.
  func end() { reading.withLock { $0 = nil } }

  /// Computes the lag; nil while the lane does not read.
  ///
  /// - Parameter now: milliseconds since 1970, as in all functions here.
  func standing(at now: Int64) -> Standing? {
    reading.withLock {
      guard var standing = $0 else { return nil }
      if now - standing.toldAt >= Self.stillMilliseconds {
        standing.observe(at: now)
        $0 = standing
      }
      return Standing(partition: standing.partition, records: standing.behind.records, milliseconds: standing.behind.milliseconds)
    }
  }
}
