/// Why a received message is refused.
enum MessageFailure: Error, Equatable {
  case malformed(String)
  case headTooLarge
  case bodyTooLarge
  case transferCodingUnknown
  case versionUnknown
  case expectationUnknown

  /// The response to the client. Then the connection is closed, because the next message's beginning is unknown.
  var response: HTTPResponse {
    switch self {
    case .malformed(let text): HTTPResponse(.badRequest, text: "The request is malformed: \(text).\n")
    case .headTooLarge: HTTPResponse(.headerFieldsTooLarge, text: "The request line and header fields are too large.\n")
    case .bodyTooLarge: HTTPResponse(.contentTooLarge, text: "The body is too large.\n")
    case .transferCodingUnknown: HTTPResponse(.notImplemented, text: "Only the transfer coding 'chunked' is known.\n")
    case .versionUnknown: HTTPResponse(.versionNotSupported, text: "Speak HTTP/1.1.\n")
    case .expectationUnknown: HTTPResponse(.expectationFailed, text: "Only the expectation '100-continue' is known.\n")
    }
  }
}
