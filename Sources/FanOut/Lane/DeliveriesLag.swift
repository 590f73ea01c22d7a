import EventLoop
import Kafka
import Synchronization
import Worker

/// How far a lane is behind in its partition of `deliveries`: the lane tells once a second, and whoever asks does so on any thread.
///
/// A lane that stands still tells nothing: then the log's end is looked up when somebody asks, so that it is seen to fall behind.
final class DeliveriesLag: Sendable {
  /// What a lane is behind.
  struct Standing: Equatable {
    /// The partition that it reads.
    var partition: Int32
    /// Records that it has not taken yet.
    var records: Int64
    /// How old the oldest of them is, in milliseconds, 0 where there is none; nil where that is not known.
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

  /// A lane that has told nothing for so long stands still, in milliseconds: it tells once a second.
  static let stillMilliseconds: Int64 = 3_000

  /// The lane begins to read.
  ///
  /// - Parameters:
  ///   - next: the offset of the first record that it is to take.
  ///   - end: tells the end of the log, on any thread.
  func begin(partition: Int32, next: Int64, at now: Int64, end: @escaping @Sendable () -> Int64?) {
    var begun = Reading(partition: partition, end: end, next: next, toldAt: now)
    // Reading begins at the end: nothing that it is to take is older.
    begun.behind.observe(.init(next: next, end: next, now: now))
    reading.withLock { $0 = begun }
  }

  /// The lane tells how far it is.
  ///
  /// - Parameters:
  ///   - next: the offset of the first record that it has not taken; nil where it has taken none yet.
  ///   - taken: the timestamp of the record before.
  func told(next: Int64?, taken: Int64?, at now: Int64) {
    reading.withLock {
      guard var standing = $0 else { return }
      (standing.next, standing.taken, standing.toldAt) = (next ?? standing.next, taken, now)
      standing.observe(at: now)
      $0 = standing
    }
  }

  /// The lane reads no more.
  func end() { reading.withLock { $0 = nil } }

  /// How far it is behind; nil while it does not read.
  ///
  /// - Parameter now: milliseconds since 1970, as everywhere here.
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
