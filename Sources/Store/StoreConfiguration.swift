import EventLoop
public import Redis

/// Where the cluster's Redis is, and the settings that all of its workers share.
public struct StoreConfiguration: Sendable, CustomStringConvertible {
  /// How many buckets the keys are spread over by default.
  public static let standardBuckets = 256

  /// The server.
  public var address: RedisAddress
  /// How many buckets the keys are spread over: 1 to 16384. Never change it in a cluster's life.
  public var buckets: Int
  /// How long a call may take while the server is silent, in milliseconds. A slower call fails and resets the connection. Default 5,000.
  public var callDeadlineMilliseconds = 5000
  /// How often a worker reads the server's memory and settings, in milliseconds. Default 10,000.
  public var inspectionMilliseconds = 10_000
  /// The machine's clock, in milliseconds since 1970. It is compared with that of Redis.
  public var wallClock: @Sendable () -> Int64 = WallClock.milliseconds

  /// A configuration of its parts.
  public init(_ address: RedisAddress, buckets: Int = StoreConfiguration.standardBuckets) {
    (self.address, self.buckets) = (address, buckets)
  }

  /// The address, without its password.
  public var description: String { "\(address)" }
}
