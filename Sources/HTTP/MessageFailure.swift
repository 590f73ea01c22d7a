/// Why a received message is refused.
enum MessageFailure: Error, Equatable {
  case malformed(String)
  case headTooLarge
  case bodyTooLarge(maximum: Int)
  /// The server buffers too many bodies.
  case bodiesTooLarge
  case transferCodingUnknown
  case versionUnknown
  case expectationUnknown

  /// The status of the response to the client, and its text. Then the connection is closed, because the next message's beginning is unknown.
  var refusal: (status: HTTPStatus, text: String) {
    switch self {
    case .malformed(let text): (.badRequest, "The request is malformed: \(text).")
    case .headTooLarge: (.headerFieldsTooLarge, "The request line and header fields are too large.")
    case .bodyTooLarge(let maximum): (.contentTooLarge, "The body has more than \(maximum) bytes.")
    case .bodiesTooLarge: (.serviceUnavailable, "The server is receiving too many bodies.")
    case .transferCodingUnknown: (.notImplemented, "Only the transfer coding 'chunked' is known.")
    case .versionUnknown: (.versionNotSupported, "Speak HTTP/1.1.")
    case .expectationUnknown: (.expectationFailed, "Only the expectation '100-continue' is known.")
    }
  }
}
