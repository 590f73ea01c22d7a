import EventLoop
public import Redis

/// Where the cluster's Redis is, and what all of its workers must agree on.
public struct StoreConfiguration: Sendable, CustomStringConvertible {
  /// The buckets that keys are spread over where nothing else is said.
  public static let standardBuckets = 256

  /// The server.
  public var address: RedisAddress
  /// The buckets that keys are spread over: 1 to 16384, and never changed in a cluster's life.
  public var buckets: Int
  /// How long a call may take, in milliseconds, while the server says nothing; a later one fails and resets the connection. Default 5,000.
  public var callDeadlineMilliseconds = 5000
  /// How often a worker asks for its memory and its settings, in milliseconds. Default 10,000.
  public var inspectionMilliseconds = 10_000
  /// The clock that is compared with that of Redis, in milliseconds since 1970.
  public var wallClock: @Sendable () -> Int64 = WallClock.milliseconds

  /// A configuration from its parts.
  public init(_ address: RedisAddress, buckets: Int = StoreConfiguration.standardBuckets) {
    (self.address, self.buckets) = (address, buckets)
  }

  /// The address, without its password.
  public var description: String { "\(address)" }
}
