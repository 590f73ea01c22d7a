/// The counters of a server since its start.
public struct HTTPServerStatistics: Sendable {
  /// Connections accepted.
  public var accepted = 0
  /// Connections that are open, WebSockets included.
  public var open = 0
  /// Connections answered with 503 because there were too many.
  public var overLimit = 0
  /// Connections answered with 503 because the process has few descriptors left.
  public var overDescriptors = 0
  /// Connections answered with 429 because there were too many of their address.
  public var overAddressLimit = 0
  /// Whole requests handed to a route, upgrades included.
  public var requests = 0
  /// Requests that were refused before a route saw them, by status.
  public var refused: [Int: Int] = [:]
  /// Requests that exceeded their time (408).
  public var timedOut = 0

  /// Makes counters of zero.
  public init() {}
}
