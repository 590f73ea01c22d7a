/// A server's response.
public struct HTTPClientResponse: Sendable {
  /// The status; never that of an interim response.
  public let status: HTTPStatus
  /// The header fields, without those of a trailer.
  public let headers: HTTPHeaders
  /// The body; empty if a receiver took it.
  public internal(set) var body: [UInt8] = []
}

/// A receiver's answer to a piece of a body.
public enum HTTPBodyDemand: Sendable, Hashable {
  /// Continue.
  case more
  /// Deliver nothing until `HTTPClientCall.resumeBody()`. The server has to wait, and the request's time continues.
  case pause
  /// Nothing more is needed: the request ends with `canceled`.
  case stop
}
