public import EventLoop
public import Kafka

/// Which partitions of a compacted topic stay short of their ends though nothing more comes of them. A value.
///
/// Where a log's last offsets have lost their records, no record and no end-of-partition event reaches the end: only a new record does.
public struct SilentEnds: Sendable {
  private struct Wait {
    let reached: Int64
    var due: Int64
  }

  private var waits: [Int32: Wait] = [:]

  /// How long a partition is silent before a record is written to it, and before the next one is, in milliseconds.
  public static let (silenceMilliseconds, pauseMilliseconds): (Int64, Int64) = (10_000, 60_000)

  /// Of partitions that nobody has waited for.
  public init() {}

  /// Looks how far the partitions are; answers with those that are to get a record now.
  ///
  /// - Parameters:
  ///   - reached: below which offset each partition is read.
  ///   - ends: the offsets that are waited for.
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

/// The tombstone that is written to a partition of a compacted topic so that its end can be reached.
public enum EndTombstone {
  /// Its key: no device's token and no application.
  public static let key = Array("carillon:end".utf8)

  private static let timeoutMilliseconds = 10_000

  /// Whether a record is one.
  public static func matches(_ record: RecordView) -> Bool { record.value == nil && record.key?.elementsEqual(key) == true }

  /// Writes one to each of these partitions; on the loop.
  public static func write(to partitions: [TopicPartition], on loop: EventLoop, _ kafka: KafkaConfiguration) async throws(KafkaError) {
    let timeout = ["message.timeout.ms": String(timeoutMilliseconds)]
    let producer = try Producer(on: loop, kafka.merging(timeout), handler: SilentProducerHandler())
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
