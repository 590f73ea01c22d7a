/// The bounds of an HTTP server. Times are milliseconds, and are noticed up to `sweepMilliseconds` late.
public struct HTTPServerConfiguration: Sendable {
  /// Bytes of a request line with its header fields; beyond it 431. At most 65,536.
  public var maximumHeadBytes = 16_384
  /// Header fields of a request; beyond it 431.
  public var maximumHeaderFields = 100
  /// Bytes of a request's body; beyond it 413.
  public var maximumBodyBytes = 65_536
  /// Connections at once, WebSockets included; beyond it 503.
  public var maximumConnections = 50_000
  /// Connections at once of one address (of IPv6: of one /64); beyond it 429. 0: no bound, as it must be behind a proxy, from whose
  /// address all connections come: what it says of its clients (`X-Forwarded-For`) anybody could say, and is not listened to.
  public var maximumConnectionsPerAddress = 0
  /// Connections whose descriptor has this number or a higher one get 503: the process has opened so many that it needs the rest for itself.
  public var maximumDescriptor = Int32.max
  /// At the bound of connections, whether the one that has owed a request for longest is closed for a new one, which is then served.
  /// Otherwise connections that send nothing would keep everybody out.
  public var replacesSilent = false
  /// From a request's first byte, or the accepting of its connection, to the end of its head; then 408.
  public var headMilliseconds = 10_000
  /// From the end of the head to the end of the body; then 408.
  public var bodyMilliseconds = 30_000
  /// How long a connection without a request is kept.
  public var idleMilliseconds = 60_000
  /// How long a client may take to read a response; of a body that is read piece by piece, each piece of at most 131,072 bytes.
  public var writeMilliseconds = 30_000
  /// How long an erring client is read on after its error response, so that it can still see it.
  public var lingerMilliseconds = 2_000
  /// Bytes that are read, and dropped, of a client after its last response. One that sends more is reset a second later.
  public var lingerBytes = 16_384
  /// Between two looks at all deadlines.
  public var sweepMilliseconds = 1_000
  /// What `Retry-After` says with 503 and 429 when there are too many connections, in seconds: up to twice this, by lot, so that those
  /// who were refused together do not retry together.
  public var retryAfterSeconds = 5
  /// Connections that the kernel holds ready to be accepted.
  public var backlog = 4096
  /// Several servers, of lanes or processes, share the port (SO_REUSEPORT).
  public var reusePort = false

  /// The defaults.
  public init() {}
}
