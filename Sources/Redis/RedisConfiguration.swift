/// The settings of a connection to Redis.
public struct RedisConfiguration: Sendable {
  /// The server, the credentials and the database.
  public var address: RedisAddress
  /// The connection's name in `CLIENT LIST`, without spaces. Default `carillon`.
  var clientName: String
  /// How long a call may take while the server is silent, in milliseconds. A slower call fails and resets the connection. Default 5,000.
  public var callDeadlineMilliseconds: Int
  /// How long look-up, connection and greeting may take together, in milliseconds. Default 5,000.
  public var connectDeadlineMilliseconds: Int
  /// The most calls in flight. Beyond it `send` answers `full`. Default 16,384.
  var maximumInFlight: Int
  /// The most bytes of calls in flight. Beyond it `send` answers `full`; a single call may be larger. Default 64 MiB.
  var maximumBytesInFlight: Int
  /// The waits between attempts to connect.
  var backoff: Backoff
  /// The scripts that are loaded before the connection is up.
  var scripts: [RedisScript]

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

/// The answer to a call.
public enum RedisAdmission: Sendable, Hashable {
  /// It is in flight. Its handler is called exactly once.
  case accepted
  /// Too many calls or bytes are in flight. Nothing was sent, and the handler is not called. Wait for replies.
  case full
  /// There is no connection now. Nothing was sent, and the handler is not called. Wait for `onUp`.
  case down
}
