public import EventLoop
public import Kafka

/// Finds partitions of a compacted topic whose end no record reaches any more. A value.
///
/// If the last offsets of a log have lost their records, neither a record nor an end-of-partition event reaches the end. Only a new record
/// does.
public struct SilentEnds: Sendable {
  private struct Wait {
    let reached: Int64
    var due: Int64
  }

  private var waits: [Int32: Wait] = [:]

  /// How long a partition must be silent before it gets a record, and before it gets the next one, in milliseconds.
  static let (silenceMilliseconds, pauseMilliseconds): (Int64, Int64) = (10_000, 60_000)

  /// Makes it without any partition.
  public init() {}

  /// Takes the positions of the partitions. Answers those that need a record now.
  ///
  /// - Parameters:
  ///   - reached: the offset below which each partition is read.
  ///   - ends: the offsets to reach.
  ///   - now: by the steady clock.
  public mutating func look(_ reached: [Int32: Int64], ends: [Int32: Int64], at now: Int64) -> [Int32] {
    waits = waits.filter { partition, _ in reached[partition] ?? 0 < ends[partition] ?? 0 }
    var silent: [Int32] = []
    for (partition, end) in ends {
      let offset = reached[partition] ?? 0
      guard offset < end else { continue }
      guard let wait = waits[partition], wait.reached == offset else {
        waits[partition] = Wait(reached: offset, due: now + Self.silenceMilliseconds)
        continue
      }
      guard now >= wait.due else { continue }
      waits[partition]?.due = now + Self.pauseMilliseconds
      silent.append(partition)
    }
    return silent.sorted()
  }
}

/// The tombstone that makes the end of a compacted topic's partition reachable.
public enum EndTombstone {
  /// Its key, which is neither a device's token nor an application.
  static let key = Array("carillon:end".utf8)

  private static let timeoutMilliseconds = 10_000

  /// Whether a record is such a tombstone.
  public static func matches(_ record: RecordView) -> Bool { record.value == nil && record.key?.elementsEqual(key) == true }

  /// Writes a tombstone to each of these partitions. Call it on the loop.
  public static func write(to partitions: [TopicPartition], on loop: EventLoop, _ kafka: KafkaConfiguration) async throws(KafkaError) {
    guard !partitions.isEmpty else { return }
    let timeout = ["message.timeout.ms": String(timeoutMilliseconds)]
    let producer = try Producer(on: loop, kafka.merging(timeout))
    var failure: KafkaError?
    do throws(KafkaError) {
      for partition in partitions {
        _ = try await producer.send(try producer.topic(partition.topic), partition: partition.partition, key: key, value: nil)
      }
    } catch {
      failure = error
    }
    await producer.close(withinMilliseconds: 1_000)
    if let failure { throw failure }
  }
}
