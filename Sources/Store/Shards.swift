public import EventLoop
import Redis

/// The Redis servers that the keys lie on: one today.
///
/// Each part of the store asks here which connection a bucket's keys belong to. Modules above do not know that there are connections.
public final class Shards {
  let keys: Keys
  /// The machine's clock, in milliseconds since 1970.
  let wallClock: @Sendable () -> Int64
  private let one: RedisConnection
  /// Called when calls are accepted: the first time, and again after each loss.
  public var onUp: (() -> Void)?
  /// Called when a connection is lost, after the calls in flight have failed.
  public var onDown: ((StoreError) -> Void)?
  /// Called when an attempt to connect has failed, with the milliseconds until the next.
  public var onAttemptFailed: ((StoreError, Int) -> Void)?

  /// Called with one of `errorKinds` for each sent call that fails, and for each failed attempt to connect.
  public var onError: ((String) -> Void)?
  /// Called for each answer about the server itself, before the call fails with it. Then a `SelfCheck` is due.
  public var onRefusal: ((StoreError) -> Void)?
  /// Called with a key that held a value of a wrong type and was removed. It held nothing of the cluster.
  public var onMended: ((_ key: String) -> Void)?
  /// All kinds of errors.
  public static let errorKinds = RedisError.Code.allCases.map(\.rawValue)

  /// Makes connections that are not started yet; call it on the loop.
  ///
  /// - Parameters:
  ///   - clientName: what the server calls the connection.
  ///   - isRebuilding: whether the caller is the rebuilder, which writes to buckets without markers.
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

  /// Every script of the workers: the scripts that a check calls.
  static let scripts = CheckSteps.scripts(CheckKeys()).compactMap(\.script)

  /// Begins to connect. `onUp` and `onAttemptFailed` report the outcome.
  public func start() { one.start() }

  /// Waits until calls are accepted; throws the connection's error if that takes too long.
  public func waitUntilUp(withinMilliseconds milliseconds: Int) async throws {
    try await one.waitUntilUp(withinMilliseconds: milliseconds)
  }

  /// Whether calls are accepted.
  public var isUp: Bool { one.isUp }

  /// Counts the signs that the server may have lost something. If it has risen, data that was written before may be gone.
  public var epoch: UInt64 { one.epoch }

  /// Fails every call in flight, and closes the connections for good.
  public func close() {
    one.close()
    (onUp, onDown, onAttemptFailed) = (nil, nil, nil)
    (onError, onRefusal, onMended) = (nil, nil, nil)
  }

  /// How many buckets there are.
  public var buckets: Int { keys.buckets }

  /// How many servers there are.
  var count: Int { 1 }

  /// Which server has the keys of a bucket. One call may use all buckets of a server.
  func index(of bucket: Int) -> Int { 0 }

  /// The connection to the server of a bucket's keys.
  func shard(of bucket: Int) -> RedisConnection { one }

  /// The connection to the server of a device's keys.
  func shard(ofDevice token: String) -> RedisConnection { shard(of: keys.bucket(of: token)) }

  /// The connection to the server of a key that was read from Redis and contains its bucket.
  func shard(ofKey key: UnsafeRawBufferPointer) -> RedisConnection {
    guard let opening = key.firstIndex(of: UInt8(ascii: "{")) else { return common }
    let digits = key[(opening + 1)...].prefix { $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }.prefix(5)
    return shard(of: digits.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) })
  }

  /// The connection to the server of the keys without a bucket.
  var common: RedisConnection { one }
}
