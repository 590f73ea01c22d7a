import Redis
import Worker

/// Finds the record that takes its worker's process down: counted in Redis, since the worker that knew is gone. Loop-confined.
///
/// A partition that was begun several times at the same offset, and never left in order, is suspected: its records are then worked on
/// one at a time, each noted before. The one that was being worked on alone at the end of several processes is condemned.
final class CrashWatch: RedisReplyHandler {
  /// What is known when partitions are begun.
  struct Suspicion {
    /// Records are to be worked on one at a time.
    var isCareful = false
    /// By the field of the partition's marker: the offset of a record that no worker survives.
    var condemned: [String: Int64] = [:]
  }

  /// Begins at one offset after which a partition is suspected.
  static let suspectedAfter = 4
  /// Processes that ended while working on a record alone, after which it is condemned.
  static let condemnedAfter = 2
  /// So many records are worked on one at a time before a lane goes on as usual.
  static let carefulRecords = 1_000

  private let redis: RedisConnection
  private var command = RedisCommand()
  private var marks: [UInt64: (Bool) -> Void] = [:]
  private var lastMark: UInt64 = 0
  private static let key = "tries"

  /// Counts a begin.
  ///
  /// Keys: the counts. Arguments, per partition: field, offset. Answers, per partition, `{begins, 1 where a record was worked on alone when
  /// a process ended, offset of the record with which most ended or -1, how many those were}`.
  static let script = RedisScript(
    """
    local answer = {}
    for i = 1, #ARGV, 2 do
      local field, offset = ARGV[i], ARGV[i + 1]
      local begins, alone, most, ended = 1, 0, -1, 0
      local known = redis.call('HGET', KEYS[1], field)
      if known and string.match(known, '^%d+') == offset then begins = string.match(known, '%d+$') + 1 end
      redis.call('HSET', KEYS[1], field, offset .. ' ' .. begins)
      local last = redis.call('HGET', KEYS[1], field .. ' alone')
      if last then
        alone = 1
        redis.call('HINCRBY', KEYS[1], field .. ' ended ' .. last, 1)
        redis.call('HDEL', KEYS[1], field .. ' alone')
      end
      local all = redis.call('HGETALL', KEYS[1])
      for k = 1, #all, 2 do
        local name, place = string.match(all[k], '^(%a%d+) ended (%d+)$')
        if name == field and tonumber(all[k + 1]) > ended then most, ended = tonumber(place), tonumber(all[k + 1]) end
      end
      answer[#answer + 1] = {begins, alone, most, ended}
    end
    return answer
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

  init(_ redis: RedisConnection) { self.redis = redis }

  /// Partitions are begun at these offsets.
  func began(_ starts: [(field: String, offset: Int64)]) async throws -> Suspicion {
    let arguments = starts.flatMap { [RedisArgument.text($0.field), .integer($0.offset)] }
    let answer = try await redis.call(Self.script, keys: [.text(Self.key)], arguments: arguments)
    var suspicion = Suspicion()
    for (start, known) in zip(starts, answer.array ?? []) {
      let numbers = known.array?.compactMap(\.integer) ?? []
      guard numbers.count == 4 else { continue }
      if numbers[0] >= Self.suspectedAfter || numbers[1] == 1 { suspicion.isCareful = true }
      if numbers[3] >= Self.condemnedAfter { suspicion.condemned[start.field] = numbers[2] }
    }
    return suspicion
  }

  /// A record is going to be worked on alone; `then` is told whether Redis has noted that.
  func mark(_ field: String, _ offset: Int64, _ then: @escaping (Bool) -> Void) {
    lastMark += 1
    command.begin("HSET")
    command.append(Self.key)
    command.append(field + " alone")
    command.append(offset)
    marks[lastMark] = then
    if redis.send(command, to: self, token: lastMark) != .accepted { answer(lastMark, false) }
  }

  /// Partitions are left in order, or a lane has gone on as usual: nothing is suspected any more.
  func cleared(_ fields: [String]) {
    guard !fields.isEmpty else { return }
    command.begin(Self.clearScript, keys: 1)
    command.append(Self.key)
    for field in fields { command.append(field) }
    _ = redis.send(command, to: self, token: 0)
  }

  func redisReplied(token: UInt64, reply: RedisReplyView) { answer(token, true) }
  func redisFailed(token: UInt64, error: RedisError) { answer(token, false) }

  private func answer(_ token: UInt64, _ isNoted: Bool) { marks.removeValue(forKey: token)?(isNoted) }
}
