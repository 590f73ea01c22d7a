import EventLoop
import Redis
import Worker

/// The lane's place among the lanes: which partition of `deliveries` it reads, and the heartbeat that keeps it. Loop-confined.
final class LaneMembership: RedisReplyHandler {
  private let redis: RedisConnection
  private let name: String
  private let lifetime: Int
  private var command = RedisCommand()
  private var member = ""
  private let timer: Timer
  private var isClosed = false
  /// The lane had lapsed, so others may have taken its partition too: sessions look after their mailboxes.
  var onLapse: (() -> Void)?
  /// Told when Redis begins to refuse what writes, and with nil when it takes it again.
  var onRefusal: ((RedisError?) -> Void)?
  private var isRefused = false

  /// - Parameters:
  ///   - name: unique among all lanes.
  ///   - lifetimeMilliseconds: how long a silent lane counts as alive.
  init(on loop: EventLoop, _ redis: RedisConnection, name: String, lifetimeMilliseconds: Int) {
    self.redis = redis
    self.name = name
    lifetime = lifetimeMilliseconds
    var beat: () -> Void = {}
    timer = Timer(on: loop) { beat() }
    beat = { [unowned self] in self.beat() }
  }

  /// Takes a partition that no living lane has, or the least taken one, and begins to beat.
  func claim(partitions: Int) async throws -> Int32 {
    let answer = try await redis.call(
      LaneScripts.claim, keys: ["\(RedisKeys.lanes)"], arguments: [.text(name), .integer(Int64(lifetime)), .integer(Int64(partitions))])
    guard let partition = answer.integer, (0..<Int64(partitions)).contains(partition) else {
      throw RedisError(.rejected, "the claim of a partition was answered with something else")
    }
    member = "\(partition):\(name)"
    timer.start(after: lifetime / 4, repeating: lifetime / 4)
    return Int32(partition)
  }

  private func beat() {
    command.begin(LaneScripts.beat, keys: 1)
    command.append("\(RedisKeys.lanes)")
    command.append(member)
    _ = redis.send(command, to: self)
  }

  func redisReplied(token: UInt64, reply: RedisReplyView) {
    if isRefused {
      isRefused = false
      onRefusal?(nil)
    }
    if !isClosed, reply.integer == 0 { onLapse?() }
  }

  func redisFailed(token: UInt64, error: RedisError) {
    guard error.refusesWrites, !isRefused else { return }
    isRefused = true
    onRefusal?(error)
  }

  /// Gives the partition up.
  func leave() async {
    guard !isClosed else { return }
    isClosed = true
    timer.close()
    (onLapse, onRefusal) = (nil, nil)
    if !member.isEmpty { _ = try? await redis.command("ZREM", "\(RedisKeys.lanes)", .text(member)) }
  }
}
