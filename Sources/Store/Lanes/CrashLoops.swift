import Redis

/// What is counted so that a record that takes its worker's process down is found: in Redis, since the worker that knew is gone.
/// Loop-confined.
///
/// Fields of the hash, each beginning with the field of a partition's markers:
///
/// | field | value |
/// |---|---|
/// | `q3` | the offset that it was begun at last, and how often |
/// | `q3 group` | the first offset of the records that are worked on, how many offsets they span, and the process that does: `-` when they are finished, or its end was counted |
/// | `q3 ended 17` | how many processes have ended while they worked on this record alone |
///
/// What cannot be read of it counts as not counted, and is written over: it only delays finding the record.
public final class CrashLoops {
  private let shards: Shards
  private let calls = Calls()

  /// Of these servers.
  public init(_ shards: Shards) { self.shards = shards }

  /// Counts a begin, and the end of another process that had noted a group and did not finish it.
  static let beginScript = RedisScript(file: PackageResources.crash_loop_begin_lua)

  /// Notes the group that the process works on from now on.
  static let markScript = RedisScript(file: PackageResources.crash_loop_mark_lua)

  /// Removes everything that is counted for partitions.
  static let clearScript = RedisScript(file: PackageResources.crash_loop_clear_lua)

  /// What is known of a partition that begins.
  public struct Counts: Sendable {
    /// How often it was begun at this offset.
    public let begins: Int64
    /// The first offset of the group that was noted last, and how many it spans; nil for none.
    public let group: (first: Int64, width: Int64)?
    /// The records from there on with which alone processes have ended, and how many those were.
    public let ends: [(offset: Int64, processes: Int64)]
  }

  /// Partitions begin at these offsets, in this process: what is known of each, in order; nil where that cannot be read.
  public func began(
    _ starts: [(partition: MarkedPartition, offset: Int64)], by process: String
  ) async throws(StoreError) -> [Counts?] {
    let arguments = [RedisArgument.text(process)] + starts.flatMap { [.text($0.partition.field), .integer($0.offset)] }
    let answer = try await shards.common.answer(Self.beginScript, keys: [.text(Keys.tries)], arguments: arguments)
    if answer.array?.last?.integer == 1 { shards.onMended?(Keys.tries) }
    return (answer.array ?? []).prefix(starts.count).map { known in
      // No offset and no count is greater; sums of them stay within 64 bits.
      let numbers = (known.array?.compactMap(\.integer) ?? []).map { min(max(0, $0), 1 << 60) }
      guard numbers.count >= 3, numbers.count % 2 == 1 else { return nil }
      let ends = stride(from: 3, to: numbers.count, by: 2).map { (offset: numbers[$0], processes: numbers[$0 + 1]) }
      return Counts(begins: numbers[0], group: numbers[2] > 0 ? (numbers[1], numbers[2]) : nil, ends: ends)
    }
  }

  /// A group of records is going to be worked on by a process.
  ///
  /// - Parameter others: partitions of which the process may have noted a group, which is finished: whoever ends now does not end over it.
  public func mark(
    _ partition: MarkedPartition, first: Int64, width: Int64, by process: String, insteadOf others: [MarkedPartition],
    _ then: @escaping (StoreError?) -> Void
  ) { mark(partition.field, first, width, process, others, then) }

  /// A process has finished the groups of these partitions, and goes on with no other.
  public func unmark(_ partitions: [MarkedPartition], by process: String) { mark("", 0, 0, process, partitions) { _ in } }

  private func mark(
    _ field: String, _ first: Int64, _ width: Int64, _ process: String, _ others: [MarkedPartition],
    _ then: @escaping (StoreError?) -> Void
  ) {
    calls.command.begin(Self.markScript, keys: 1)
    calls.command.append(Keys.tries)
    calls.command.append(process)
    calls.command.append(field)
    calls.command.append(String(first))
    calls.command.append(String(width))
    for other in others { calls.command.append(other.field) }
    calls.send(over: shards.common) { answer in
      if case .failure(let error) = answer { then(error) } else { then(nil) }
    }
  }

  /// Nothing of these partitions is suspected any more. What stays is looked at again when they begin.
  public func clear(_ partitions: [MarkedPartition]) {
    guard !partitions.isEmpty else { return }
    calls.command.begin(Self.clearScript, keys: 1)
    calls.command.append(Keys.tries)
    for partition in partitions { calls.command.append(partition.field) }
    calls.send(over: shards.common) { _ in }
  }
}
