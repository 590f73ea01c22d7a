/// How a connection to Redis behaves.
public struct RedisConfiguration: Sendable {
  /// The server, the credentials and the database.
  public var address: RedisAddress
  /// The name by which `CLIENT LIST` shows the connection; without spaces. Default `carillon`.
  public var clientName: String
  /// How long a call may take, in milliseconds, while the server says nothing; a later one fails and resets the connection. Default 5,000.
  public var callDeadlineMilliseconds: Int
  /// How long name look-up, connecting and greeting may take together, in milliseconds. Default 5,000.
  public var connectDeadlineMilliseconds: Int
  /// How many calls may be in flight before `send` answers `full`. Default 16,384.
  public var maximumInFlight: Int
  /// How many bytes of calls may be in flight before `send` answers `full`; a single call may be larger. Default 64 MiB.
  public var maximumBytesInFlight: Int
  /// How long to wait between attempts to connect.
  public var backoff: Backoff
  /// The scripts that are loaded before the connection is up.
  public var scripts: [RedisScript]

  /// Makes a configuration with the defaults above.
  public init(
    _ address: RedisAddress, clientName: String = "carillon", callDeadlineMilliseconds: Int = 5000, connectDeadlineMilliseconds: Int = 5000,
    maximumInFlight: Int = 16384, maximumBytesInFlight: Int = 64 << 20, backoff: Backoff = Backoff(), scripts: [RedisScript] = []
  ) {
    self.address = address
    self.clientName = clientName
    self.callDeadlineMilliseconds = callDeadlineMilliseconds
    self.connectDeadlineMilliseconds = connectDeadlineMilliseconds
    self.maximumInFlight = maximumInFlight
    self.maximumBytesInFlight = maximumBytesInFlight
    self.backoff = backoff
    self.scripts = scripts
  }
}

/// What became of a call that was handed to a connection.
public enum RedisAdmission: Sendable, Hashable {
  /// It is in flight; its handler is called exactly once.
  case accepted
  /// Too many calls or bytes are in flight; nothing was sent, and the handler is not called. Wait for replies.
  case full
  /// There is no connection now; nothing was sent, and the handler is not called. Wait for `onUp`.
  case down
}

/// What a connection is doing.
public enum RedisConnectionState: Sendable, Hashable {
  /// It was not started.
  case idle
  /// The first connection is being made.
  case connecting
  /// It takes calls.
  case up
  /// It is being made again, because of this.
  case down(RedisError)
  /// It was closed for good.
  case closed
}
