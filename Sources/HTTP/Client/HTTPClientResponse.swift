/// What a server answered.
public struct HTTPClientResponse: Sendable {
  /// The status; of an interim response never.
  public let status: HTTPStatus
  /// The header fields, without those of a trailer.
  public let headers: HTTPHeaders
  /// The body; empty where a handler took it.
  public internal(set) var body: [UInt8] = []
}

/// What a handler says after a piece of a body.
public enum HTTPBodyDemand: Sendable, Hashable {
  /// Go on.
  case more
  /// Deliver nothing until `HTTPClientCall.resumeBody()`: the server is made to wait. The request's time goes on.
  case pause
  /// That is all that is wanted: the request ends with `canceled`.
  case stop
}

/// Takes a response's body as it comes, so that it need not lie in memory.
public protocol HTTPBodyHandler: AnyObject {
  /// A piece of the body has come; its bytes are valid during the call only. Called on the loop, never for a redirect that is followed.
  ///
  /// - Parameter response: status and header fields, always the same for one request.
  func httpBodyReceived(_ bytes: UnsafeRawBufferPointer, of response: HTTPClientResponse) -> HTTPBodyDemand
}
