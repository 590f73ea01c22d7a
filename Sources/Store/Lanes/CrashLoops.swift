import Redis

/// Counts for finding a record that crashes its worker.
///
/// They lie in Redis because the crashed worker cannot remember them. Fields of the hash, each beginning with the field of a partition's
/// markers:
///
/// | field | value |
/// |---|---|
/// | `q3` | the offset that the partition began at last, and how often |
/// | `q3 group` | the first offset of the group, how many offsets it spans, and the process that works on it; `-` if the group is finished, or the process' end was counted |
/// | `q3 ended 17` | how many processes have ended while they worked on this record alone |
///
/// A value that cannot be read counts as missing and is overwritten. That only delays finding the record.
public final class CrashLoops {
  private let shards: Shards
  private let calls = Calls()

  /// Makes them for these servers.
  public init(_ shards: Shards) { self.shards = shards }

  /// Counts a begin, and the end of another process that did not finish its group.
  static let beginScript = RedisScript(file: "crash-loop-begin")

  /// Notes the group that the process works on now.
  static let noteScript = RedisScript(file: "crash-loop-note")

  /// Removes all counts of partitions.
  static let clearScript = RedisScript(file: "crash-loop-clear")

  /// The counts of a partition that begins.
  public struct Counts: Sendable {
    /// How often it began at this offset.
    public let begins: Int64
    /// The first offset of the last noted group, and how many it spans; nil if there is none.
    public let group: (first: Int64, width: Int64)?
    /// The records from there on that crashed processes alone, each with the number of processes.
    public let ends: [(offset: Int64, processes: Int64)]
  }

  /// Counts that partitions begin at these offsets in this process. Answers the counts of each, in order; nil if they cannot be read.
  public func began(
    _ starts: [(partition: MarkedPartition, offset: Int64)], by process: String
  ) async throws(StoreError) -> [Counts?] {
    let arguments = [RedisArgument.text(process)] + starts.flatMap { [.text($0.partition.field), .integer($0.offset)] }
    let answer = try await shards.common.answer(Self.beginScript, keys: [.text(Keys.tries)], arguments: arguments)
    if answer.array?.last?.integer == 1 { shards.onMended?(Keys.tries) }
    return (answer.array ?? []).prefix(starts.count).map { known in
      // No offset or count is greater. Sums of them stay within 64 bits.
      let numbers = (known.array?.compactMap(\.integer) ?? []).map { min(max(0, $0), 1 << 60) }
      guard numbers.count >= 3, numbers.count % 2 == 1 else { return nil }
      let ends = stride(from: 3, to: numbers.count, by: 2).map { (offset: numbers[$0], processes: numbers[$0 + 1]) }
      return Counts(begins: numbers[0], group: numbers[2] > 0 ? (numbers[1], numbers[2]) : nil, ends: ends)
    }
  }

  /// Notes that a process begins to process a group of records, or that it processes no group any more.
  ///
  /// - Parameters:
  ///   - partition: nil if no group follows.
  ///   - others: partitions whose groups this process has finished. If the process crashes now, they are not blamed.
  public func note(
    _ partition: MarkedPartition?, first: Int64 = 0, width: Int64 = 0, by process: String, insteadOf others: [MarkedPartition],
    _ then: @escaping (StoreError?) -> Void = { _ in }
  ) {
    calls.command.begin(Self.noteScript, keys: [Keys.tries])
    for argument in [process, partition?.field ?? "", String(first), String(width)] + others.map(\.field) {
      calls.command.append(argument)
    }
    calls.sendWrite(over: shards.common, then)
  }

  /// Removes the counts of these partitions. If that fails, they are checked again when the partitions begin.
  public func clear(_ partitions: [MarkedPartition]) {
    guard !partitions.isEmpty else { return }
    calls.command.begin(Self.clearScript, keys: [Keys.tries])
    for partition in partitions { calls.command.append(partition.field) }
    calls.send(over: shards.common) { _ in }
  }
}
