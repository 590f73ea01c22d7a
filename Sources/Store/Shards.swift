public import EventLoop
import Redis

/// The Redis servers that the keys lie on: today the one. Loop-confined.
///
/// Each room asks here which connection a bucket's keys belong to, and nothing above knows that there are connections.
public final class Shards {
  let keys: Keys
  /// The machine's clock, in milliseconds since 1970.
  let wallClock: @Sendable () -> Int64
  private let one: RedisConnection
  /// Called when it takes calls, for the first time and after each loss.
  public var onUp: (() -> Void)?
  /// Called when a connection that was up is lost, after the calls in flight have failed.
  public var onDown: ((StoreError) -> Void)?
  /// Called when an attempt to connect has failed, with the milliseconds until the next.
  public var onAttemptFailed: ((StoreError, Int) -> Void)?

  /// Called for each call that was sent and fails, and for each attempt to connect that does, with one of `errorKinds`.
  public var onError: ((String) -> Void)?
  /// Called for each answer that says something of the server itself, before the call fails with it: then a `SelfCheck` is due.
  public var onRefusal: ((StoreError) -> Void)?
  /// Called with a key that held something else than it should, and was removed: nothing of ours was lost with it.
  public var onMended: ((_ key: String) -> Void)?
  /// The kinds of errors that there are.
  public static let errorKinds = RedisError.Code.allCases.map(\.rawValue)

  /// Connections that are not started; on the loop.
  ///
  /// - Parameters:
  ///   - clientName: what the server calls the connection.
  ///   - isRebuilding: whether it is the rebuilder that writes, to buckets that have no markers yet.
  public init(on loop: EventLoop, _ configuration: StoreConfiguration, clientName: String, isRebuilding: Bool = false) {
    keys = Keys(buckets: configuration.buckets, isRebuilding: isRebuilding)
    wallClock = configuration.wallClock
    one = RedisConnection(
      on: loop,
      RedisConfiguration(
        configuration.address, clientName: clientName, callDeadlineMilliseconds: configuration.callDeadlineMilliseconds,
        maximumInFlight: 65_536, scripts: Self.scripts))
    one.onUp = { [unowned self] in onUp?() }
    one.onDown = { [unowned self] in onDown?(StoreError($0)) }
    one.onError = { [unowned self] error in
      onError?(error.code.rawValue)
      let error = StoreError(error)
      if error.needsCheck { onRefusal?(error) }
    }
    one.onAttemptFailed = { [unowned self] in onAttemptFailed?(StoreError($0), $1) }
  }

  /// Every script of the workers: those that a check calls.
  static let scripts = CheckSteps.scripts(CheckKeys()).compactMap(\.script)

  /// Begins to connect; the outcome is told by `onUp` and `onAttemptFailed`.
  public func start() { one.start() }

  /// Answers when calls are taken; throws why they are not, with the kind of error that the connection has.
  public func waitUntilUp(withinMilliseconds milliseconds: Int) async throws {
    try await one.waitUntilUp(withinMilliseconds: milliseconds)
  }

  /// Whether calls are taken.
  public var isUp: Bool { one.isUp }

  /// How often what a server keeps may have changed under the caller; what was written before may be gone when it has risen.
  public var epoch: UInt64 { one.epoch }

  /// Fails every call in flight, and ends the connections for good.
  public func close() {
    one.close()
    (onUp, onDown, onAttemptFailed) = (nil, nil, nil)
    (onError, onRefusal, onMended) = (nil, nil, nil)
  }

  /// How many buckets there are.
  public var buckets: Int { keys.buckets }

  /// How many servers there are.
  var count: Int { 1 }

  /// Which of the servers has the keys of a bucket: one call may work on all buckets of a server.
  func index(of bucket: Int) -> Int { 0 }

  /// Where the keys of a bucket lie.
  func shard(of bucket: Int) -> RedisConnection { one }

  /// Where the keys of a device's bucket lie.
  func shard(ofDevice token: String) -> RedisConnection { shard(of: keys.bucket(of: token)) }

  /// Where a key lies that was read from Redis and has its bucket in it.
  func shard(ofKey key: UnsafeRawBufferPointer) -> RedisConnection {
    guard let opening = key.firstIndex(of: UInt8(ascii: "{")) else { return common }
    let digits = key[(opening + 1)...].prefix { $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }.prefix(5)
    return shard(of: digits.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) })
  }

  /// Where the keys lie that belong to no bucket.
  var common: RedisConnection { one }
}
