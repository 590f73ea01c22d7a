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

  /// Counts a begin. Where another process has noted a group that is not finished it has ended over it, which is counted once.
  ///
  /// Keys: the counts. Arguments: the process; per partition: field, offset. Answers, per partition, `{begins, first offset of the group that
  /// was noted last, how many offsets it spans or 0}`, and behind them each record from the offset on with which alone processes have ended,
  /// and how many; at last whether the key held something else.
  static let beginScript = RedisScript(
    """
    \(MendLua.mend)
    local mended = mend(KEYS[1], 'hash')
    local LARGEST, MANY, LISTED = 2 ^ 53, 1000000, 1000
    -- A count, or nothing where it is none that this script has written.
    local function number(text)
      local value = tonumber(text)
      if value and value >= 0 and value < LARGEST then return value end
    end
    local answer = {}
    for i = 2, #ARGV, 2 do
      local field, offset = ARGV[i], ARGV[i + 1]
      local begins, first, count, ends = 1, -1, 0, {}
      local known = redis.call('HGET', KEYS[1], field)
      if known and string.match(known, '^%d+') == offset then
        begins = math.min(number(string.match(known, '%d+$')) or 0, MANY) + 1
      end
      redis.call('HSET', KEYS[1], field, offset .. ' ' .. begins)
      local last = redis.call('HGET', KEYS[1], field .. ' group')
      local place, size, process = string.match(last or '', '^(%d+) (%d+) (%S+)$')
      if place and number(place) and number(size) then
        first, count = number(place), number(size)
        if process ~= '-' and process ~= ARGV[1] then
          if count == 1 then
            local ended = field .. ' ended ' .. place
            local times = math.min(number(redis.call('HGET', KEYS[1], ended) or '') or 0, MANY)
            redis.call('HSET', KEYS[1], ended, times + 1)
          end
          redis.call('HSET', KEYS[1], field .. ' group', place .. ' ' .. size .. ' -')
        end
      end
      local all = redis.call('HGETALL', KEYS[1])
      for k = 1, #all, 2 do
        local name, place = string.match(all[k], '^(%a%d+) ended (%d+)$')
        if name == field then
          local times = math.min(number(all[k + 1]) or 0, MANY)
          if not number(place) or number(place) < tonumber(offset) then
            redis.call('HDEL', KEYS[1], all[k])
          elseif times > 0 and #ends < LISTED then
            ends[#ends + 1], ends[#ends + 2] = number(place), times
          end
        end
      end
      answer[#answer + 1] = {begins, first, count, unpack(ends)}
    end
    answer[#answer + 1] = mended
    return answer
    """)

  /// Notes the group that is worked on from now on, instead of those of other partitions that the process may have noted: these are finished,
  /// and their partitions stay suspected, for who bisects one partition and not another would hold the end over that against this.
  ///
  /// Keys: the counts. Arguments: the process, the field, or nothing where no group follows, first offset, how many it spans, the others' fields.
  static let markScript = RedisScript(
    """
    \(MendLua.mend)
    mend(KEYS[1], 'hash')
    for i = 5, #ARGV do
      local last = redis.call('HGET', KEYS[1], ARGV[i] .. ' group')
      local group, process = string.match(last or '', '^(.*) (%S+)$')
      if process == ARGV[1] then redis.call('HSET', KEYS[1], ARGV[i] .. ' group', group .. ' -') end
    end
    if ARGV[2] ~= '' then redis.call('HSET', KEYS[1], ARGV[2] .. ' group', ARGV[3] .. ' ' .. ARGV[4] .. ' ' .. ARGV[1]) end
    return 1
    """)

  /// Nothing of these partitions is suspected any more. Arguments: the fields.
  static let clearScript = RedisScript(
    """
    local all = redis.call('HKEYS', KEYS[1])
    for _, field in ipairs(ARGV) do
      for _, name in ipairs(all) do
        if string.match(name, '^%a%d+') == field then redis.call('HDEL', KEYS[1], name) end
      end
    end
    return 1
    """)

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
