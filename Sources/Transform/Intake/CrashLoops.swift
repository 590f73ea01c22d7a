import Redis
import Worker

/// Finds the record that takes its worker's process down: counted in Redis, since the worker that knew is gone. Loop-confined.
///
/// A partition that was begun several times at the same offset, and neither left in order nor ever idle, is suspected: its records are then
/// worked on in small groups, each noted before. Where a process ends over a group, the next one makes smaller ones of it, down to single
/// records; one that several processes have ended over is dead-lettered.
final class CrashLoops: RedisReplyHandler {
  /// The group that a process has ended over.
  struct Group: Equatable {
    var first: Int64
    var count: Int64

    /// How many records may be worked on together from this offset on.
    func step(at offset: Int64) -> Int {
      if offset < first { return Int(min(first - offset, Int64(CrashLoops.groupRecords))) }
      return offset < first + count ? max(1, Int(count) / CrashLoops.narrowing) : CrashLoops.groupRecords
    }
  }

  /// What is known when partitions are begun.
  struct Suspicion {
    /// Records are to be begun in groups.
    var isBisecting = false
    /// By the field of the partition's marker: what to look at more closely.
    var groups: [String: Group] = [:]
    /// By the field of the partition's marker: the offset of a record that no worker survives.
    var deadly: [String: Int64] = [:]
  }

  /// Begins at one offset after which a partition is suspected.
  static let suspectedAfter = 4
  /// Records of a group at first, and by how much the groups become smaller: 64, 8, 1.
  static let groupRecords = 64
  static let narrowing = 8
  /// Processes that ended while working on a record alone, after which it is dead-lettered.
  static let deadlyAfter = 2
  /// Processes that have ended over a record until it is dead-lettered.
  static let tries = suspectedAfter - 1 + 2 + deadlyAfter
  /// So many records are begun in groups before a lane goes on as usual.
  static let bisectedRecords = 1_000

  private let redis: RedisConnection
  private var command = RedisCommand()
  private var marks: [UInt64: (Bool) -> Void] = [:]
  private var lastMark: UInt64 = 0
  private static let key = "tries"

  /// Counts a begin.
  ///
  /// Keys: the counts. Arguments, per partition: field, offset. Answers, per partition, `{begins, first record of the group that a process
  /// has ended over, records of it or 0, record with which alone most have ended or -1, how many those were}`.
  static let script = RedisScript(
    """
    local answer = {}
    for i = 1, #ARGV, 2 do
      local field, offset = ARGV[i], ARGV[i + 1]
      local begins, first, count, most, ended = 1, -1, 0, -1, 0
      local known = redis.call('HGET', KEYS[1], field)
      if known and string.match(known, '^%d+') == offset then begins = string.match(known, '%d+$') + 1 end
      redis.call('HSET', KEYS[1], field, offset .. ' ' .. begins)
      local last = redis.call('HGET', KEYS[1], field .. ' group')
      if last then
        local place, size = string.match(last, '^(%d+) (%d+)$')
        first, count = tonumber(place), tonumber(size)
        if count == 1 then redis.call('HINCRBY', KEYS[1], field .. ' ended ' .. place, 1) end
      end
      local all = redis.call('HGETALL', KEYS[1])
      for k = 1, #all, 2 do
        local name, place = string.match(all[k], '^(%a%d+) ended (%d+)$')
        if name == field and tonumber(all[k + 1]) > ended then most, ended = tonumber(place), tonumber(all[k + 1]) end
      end
      answer[#answer + 1] = {begins, first, count, most, ended}
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
      guard numbers.count == 5 else { continue }
      if numbers[0] >= Self.suspectedAfter || numbers[2] > 0 { suspicion.isBisecting = true }
      if numbers[2] > 0 { suspicion.groups[start.field] = Group(first: numbers[1], count: numbers[2]) }
      if numbers[4] >= Self.deadlyAfter { suspicion.deadly[start.field] = numbers[3] }
    }
    return suspicion
  }

  /// A group of records is going to be worked on; `then` is told whether Redis has noted that.
  func mark(_ field: String, _ group: Group, _ then: @escaping (Bool) -> Void) {
    lastMark += 1
    command.begin("HSET")
    command.append(Self.key)
    command.append(field + " group")
    command.append("\(group.first) \(group.count)")
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
