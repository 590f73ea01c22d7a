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
  /// Keys: the counts. Arguments, per partition: field, offset. Answers, per partition, `{begins, offset of the record that was worked on
  /// alone or -1, processes that ended with it}`.
  static let script = RedisScript(
    """
    local answer = {}
    for i = 1, #ARGV, 2 do
      local field, offset = ARGV[i], ARGV[i + 1]
      local begins, alone, ended = 1, -1, 0
      local known = redis.call('HGET', KEYS[1], field)
      if known and string.match(known, '^%d+') == offset then begins = string.match(known, '%d+$') + 1 end
      redis.call('HSET', KEYS[1], field, offset .. ' ' .. begins)
      local mark = redis.call('HGET', KEYS[1], field .. 'w')
      if mark and tonumber(string.match(mark, '^%d+')) >= tonumber(offset) then
        alone, ended = tonumber(string.match(mark, '^%d+')), string.match(mark, '%d+$') + 1
        redis.call('HSET', KEYS[1], field .. 'w', string.format('%.0f', alone) .. ' ' .. ended)
      end
      answer[#answer + 1] = {begins, alone, ended}
    end
    return answer
    """)

  init(_ redis: RedisConnection) { self.redis = redis }

  /// Partitions are begun at these offsets.
  func began(_ starts: [(field: String, offset: Int64)]) async throws -> Suspicion {
    let arguments = starts.flatMap { [RedisArgument.text($0.field), .integer($0.offset)] }
    let answer = try await redis.call(Self.script, keys: [.text(Self.key)], arguments: arguments)
    var suspicion = Suspicion()
    for (start, known) in zip(starts, answer.array ?? []) {
      guard let parts = known.array, parts.count == 3, let begins = parts[0].integer, let alone = parts[1].integer else { continue }
      if begins >= Self.suspectedAfter { suspicion.isCareful = true }
      if alone >= 0 { suspicion.isCareful = true }
      if alone >= 0, parts[2].integer ?? 0 >= Self.condemnedAfter { suspicion.condemned[start.field] = alone }
    }
    return suspicion
  }

  /// A record is going to be worked on alone; `then` is told whether Redis has noted that.
  func mark(_ field: String, _ offset: Int64, _ then: @escaping (Bool) -> Void) {
    lastMark += 1
    command.begin(Self.markScript, keys: 1)
    command.append(Self.key)
    command.append(field)
    command.append(offset)
    marks[lastMark] = then
    if redis.send(command, to: self, token: lastMark) != .accepted { answer(lastMark, false) }
  }

  /// Notes a record unless it is noted already, whose count would be lost.
  static let markScript = RedisScript(
    """
    local mark = redis.call('HGET', KEYS[1], ARGV[1] .. 'w')
    if not mark or string.match(mark, '^%d+') ~= ARGV[2] then redis.call('HSET', KEYS[1], ARGV[1] .. 'w', ARGV[2] .. ' 0') end
    return 1
    """)

  /// Partitions are left in order, or a lane has gone on as usual: nothing is suspected any more.
  func cleared(_ fields: [String]) {
    guard !fields.isEmpty else { return }
    command.begin("HDEL")
    command.append(Self.key)
    for field in fields {
      command.append(field)
      command.append(field + "w")
    }
    _ = redis.send(command, to: self, token: 0)
  }

  func redisReplied(token: UInt64, reply: RedisReplyView) { answer(token, true) }
  func redisFailed(token: UInt64, error: RedisError) { answer(token, false) }

  private func answer(_ token: UInt64, _ isNoted: Bool) { marks.removeValue(forKey: token)?(isNoted) }
}
