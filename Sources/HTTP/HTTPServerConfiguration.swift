/// The limits of an HTTP server; a request's head has at most 16,384 bytes, beyond it 431. Times are milliseconds, and are noticed up to `sweepMilliseconds` late.
public struct HTTPServerConfiguration: Sendable {
  /// The most header fields of a request; beyond it 431.
  var maximumHeaderFields = 100
  /// The most bytes of a request's body; beyond it 413.
  public var maximumBodyBytes = 65_536
  /// The most bytes of all bodies that are being received at once; beyond it 503. The first 16,384 bytes of each body do not count.
  public var maximumBufferedBytes = Int.max
  /// The most connections, WebSockets included; beyond it 503.
  public var maximumConnections = 50_000
  /// The most connections of one address (of IPv6: of one /64); beyond it 429. With 0 there is no limit. A server behind a proxy needs 0,
  /// because all connections come from the proxy's address. `X-Forwarded-For` is not used, since any client could write it.
  public var maximumConnectionsPerAddress = 0
  /// Connections whose descriptor has this number or a higher one get 503: the process needs the remaining descriptors itself.
  public var maximumDescriptor = Int32.max
  /// Whether a new connection replaces the one that has waited longest without a request, if the limit of connections is reached. Otherwise
  /// silent connections would keep everybody out.
  public var replacesSilent = false
  /// The time from a request's first byte, or from the accepted connection, to the end of the head; then 408.
  public var headMilliseconds = 10_000
  /// The time from the end of the head to the end of the body; then 408.
  public var bodyMilliseconds = 30_000
  /// How long a connection without a request is kept.
  public var idleMilliseconds = 60_000
  /// How long a client may take to read a response, or each piece of at most 131,072 bytes of a streamed body.
  public var writeMilliseconds = 30_000
  /// How long an erring client is still read after its error response, so that it can see it.
  public var lingerMilliseconds = 2_000
  /// Bytes that are read and dropped after a client's last response. A client that sends more is reset a second later.
  var lingerBytes = 16_384
  /// Whether a connection is read while a handler has its request. Then a handler learns that its client has gone; but a client that has
  /// closed its sending half counts as gone, and gets no answer.
  public var readsWhileHandling = true
  /// The interval between two checks of all deadlines.
  var sweepMilliseconds = 1_000
  /// `Retry-After` of 503 and 429 for too many connections, in seconds. It is random up to twice this, so that refused clients do not retry
  /// together.
  var retryAfterSeconds = 5
  /// The most connections that wait in the kernel to be accepted.
  var backlog = 4096
  /// Whether several servers, of lanes or processes, share the port (SO_REUSEPORT).
  public var reusePort = false
  /// Whether it listens on a free port if the given one is taken.
  public var takesAnotherPort = false
  /// Makes the response to a request that no route answers, from a status and a sentence.
  public var refusal: @Sendable (HTTPStatus, String) -> HTTPResponse = { HTTPResponse($0, text: $1 + "\n") }

  /// TLS below HTTP; nil for plain connections. A connection beyond a limit is closed without an answer then, since a handshake costs more
  /// than the connection.
  public var tls: TLSServerConfiguration?

  /// The defaults.
  public init() {}
}
