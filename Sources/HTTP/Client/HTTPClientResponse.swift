/// A server's response.
public struct HTTPClientResponse: Sendable {
  /// The status; never that of an interim response.
  public let status: HTTPStatus
  /// The header fields, without those of a trailer.
  public let headers: HTTPHeaders
  /// The body; empty if a handler took it.
  public internal(set) var body: [UInt8] = []
}

/// A handler's answer to a piece of a body.
public enum HTTPBodyDemand: Sendable, Hashable {
  /// Continue.
  case more
  /// Deliver nothing until `HTTPClientCall.resumeBody()`. The server has to wait, and the request's time continues.
  case pause
  /// Nothing more is needed: the request ends with `canceled`.
  case stop
}

/// Takes a response's body as it arrives, so that it need not be in memory.
public protocol HTTPBodyHandler: AnyObject {
  /// A piece of the body, which is valid only during the call. Called on the loop, never for a redirect that is followed.
  ///
  /// - Parameter response: status and header fields, always the same for one request.
  func httpBodyReceived(_ bytes: UnsafeRawBufferPointer, of response: HTTPClientResponse) -> HTTPBodyDemand
}
