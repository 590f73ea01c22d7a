public import Notifications
import Redis

/// The workers' reports of themselves, each with its last heartbeat by Redis' clock. Loop-confined.
///
/// A worker that ends in order takes its report away. One that was killed leaves it, so that it is seen to be silent, until it is forgotten.
public final class Workers {
  private let shards: Shards

  /// Of these servers.
  public init(_ shards: Shards) { self.shards = shards }

  /// How often a worker reports itself, in milliseconds.
  public static let intervalMilliseconds = 5_000
  /// A worker counts as silent after so long, in milliseconds: when three heartbeats have not come.
  public static let silentMilliseconds: Int64 = 17_000
  /// A silent worker is forgotten after so long, in milliseconds.
  public static let forgottenMilliseconds: Int64 = 300_000
  /// Workers that are kept at most: a further one takes the place of the one that has been silent the longest.
  public static let maximum = 1_000

  private static let keys: [RedisArgument] = [.text(Keys.workers), .text(Keys.reports)]

  /// A heartbeat with its report.
  ///
  /// Keys: the workers, their reports. Arguments: name, report, milliseconds after which a silent worker is forgotten, how many are kept,
  /// milliseconds by which a heartbeat may lie in the future: those beyond were written by another clock, and are forgotten too. Answers 1
  /// where one of the keys held something else.
  static let beatScript = RedisScript(
    """
    \(MendLua.mend)
    local mended = math.max(mend(KEYS[1], 'zset'), mend(KEYS[2], 'hash'))
    local t = redis.call('TIME')
    local now = t[1] * 1000 + math.floor(t[2] / 1000)
    redis.call('ZADD', KEYS[1], now, ARGV[1])
    redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
    local ahead = redis.call('ZRANGEBYSCORE', KEYS[1], now + tonumber(ARGV[5]), '+inf', 'LIMIT', 0, 100)
    if #ahead > 0 then
      redis.call('ZREM', KEYS[1], unpack(ahead))
      redis.call('HDEL', KEYS[2], unpack(ahead))
    end
    local gone = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now - tonumber(ARGV[3]), 'LIMIT', 0, 100)
    local over = redis.call('ZCARD', KEYS[1]) - #gone - tonumber(ARGV[4])
    if over > 0 then gone = redis.call('ZRANGE', KEYS[1], 0, #gone + math.min(over, 100) - 1) end
    if #gone > 0 then
      redis.call('ZREM', KEYS[1], unpack(gone))
      redis.call('HDEL', KEYS[2], unpack(gone))
    end
    return mended
    """)

  /// The end of a worker, unless another process with its name has reported itself since.
  ///
  /// Keys: the workers, their reports. Arguments: name, when the process began, the bytes that a report may have.
  static let leaveScript = RedisScript(
    """
    local report = redis.call('HGET', KEYS[2], ARGV[1])
    if report and #report <= tonumber(ARGV[3]) then
      local isRead, said = pcall(cjson.decode, report)
      if isRead and type(said) == 'table' and type(said.started) == 'number' and said.started ~= tonumber(ARGV[2]) then return 0 end
    end
    redis.call('HDEL', KEYS[2], ARGV[1])
    return redis.call('ZREM', KEYS[1], ARGV[1])
    """)

  /// The workers that were heard of last. It changes nothing.
  ///
  /// Keys: the workers, their reports. Arguments: how many at most, the bytes that a name may have and a report. Answers for each its name,
  /// the milliseconds since its last heartbeat, and its report; none where it is larger, and no worker with a longer name.
  static let listScript = RedisScript(
    """
    local t = redis.call('TIME')
    local now = t[1] * 1000 + math.floor(t[2] / 1000)
    local found, answer = redis.call('ZREVRANGE', KEYS[1], 0, tonumber(ARGV[1]) - 1, 'WITHSCORES'), {}
    local count = 0
    for i = 1, #found, 2 do
      local name, report = found[i], ''
      if #name <= tonumber(ARGV[2]) then
        if redis.call('HSTRLEN', KEYS[2], name) <= tonumber(ARGV[3]) then report = redis.call('HGET', KEYS[2], name) or '' end
        answer[3 * count + 1], answer[3 * count + 2] = name, math.floor(now - tonumber(found[i + 1]))
        answer[3 * count + 3], count = report, count + 1
      end
    end
    return answer
    """)

  /// Says that a worker lives, and how.
  public func beat(_ report: WorkerReport) async throws(StoreError) {
    let answer = try await shards.common.answer(
      Self.beatScript, keys: Self.keys,
      arguments: [
        .text(Self.field(report.name)), .bytes(report.bytes), .integer(Self.forgottenMilliseconds), .integer(Int64(Self.maximum)),
        .integer(Self.silentMilliseconds),
      ])
    if answer.integer == 1 { shards.onMended?(Keys.workers) }
  }

  /// Takes a worker's report away, since it ends in order; that of another process with the same name stays.
  ///
  /// - Parameter started: when the process began, as its report says.
  public func leave(_ name: Name, started: Int64) async throws(StoreError) {
    _ = try await shards.common.answer(
      Self.leaveScript, keys: Self.keys,
      arguments: [.text(Self.field(name)), .integer(started), .integer(Int64(WorkerReport.maximumByteCount))])
  }

  private static func field(_ name: Name) -> String { WorkerReport.cut(name.text, WorkerReport.longText) }

  /// A worker as the others see it.
  public struct Listing: Sendable, Hashable {
    /// Its name.
    public var name: Name
    /// Milliseconds since its last heartbeat.
    public var silentMilliseconds: Int64
    /// What it said then; nil where that cannot be read.
    public var report: WorkerReport?

    /// A worker of its parts.
    public init(name: Name, silentMilliseconds: Int64, report: WorkerReport?) {
      (self.name, self.silentMilliseconds, self.report) = (name, silentMilliseconds, report)
    }

    /// Whether it has been silent for so long that it was killed, or cannot write to Redis.
    public var isSilent: Bool { silentMilliseconds >= Workers.silentMilliseconds }
  }

  /// All workers by name, those included that are silent and not forgotten; no more than `maximum`.
  public func list() async throws(StoreError) -> [Listing] {
    let answer = try await shards.common.answer(
      Self.listScript, keys: Self.keys,
      arguments: [
        .integer(Int64(Self.maximum)), .integer(Int64(WorkerReport.longText)), .integer(Int64(WorkerReport.maximumByteCount)),
      ])
    var elements = (answer.array ?? [])[...]
    var workers: [Listing] = []
    while let name = elements.popFirst()?.text, let silent = elements.popFirst()?.integer, let bytes = elements.popFirst()?.bytes {
      guard silent < Self.forgottenMilliseconds else { continue }
      // By another clock, or somebody else's: for how long it has said nothing is not known.
      let isAhead = silent <= -Self.silentMilliseconds
      workers.append(
        Listing(
          name: Name(WorkerReport.cut(name, WorkerReport.longText)),
          silentMilliseconds: isAhead ? Self.silentMilliseconds : Timestamp.bounded(silent),
          report: WorkerReport(bytes)))
    }
    return workers.sorted { $0.name < $1.name }
  }
}
