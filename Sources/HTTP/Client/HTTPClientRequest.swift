/// A client's request, and the limits of the response.
public struct HTTPClientRequest: Sendable {
  /// The method, with its content.
  public enum Method: Sendable, Hashable {
    /// Reads a resource.
    case get
    /// Reads a resource's header fields.
    case head
    /// Sends content to be processed.
    case post(body: [UInt8])
  }

  /// The method.
  var method: Method
  /// `https://HOST[:PORT][/PATH][?QUERY]`.
  var url: String
  /// Header fields, in order. The client itself sets those that frame a message or name its host.
  var headers: [(name: String, value: String)]
  /// The limit for everything, in milliseconds: from the call, with its wait for a turn and all redirects, to the body's end.
  public var timeoutMilliseconds = 10_000
  /// The most bytes of the response's body; beyond it `bodyTooLarge`, whatever `Content-Length` is.
  public var maximumBodyBytes = 1_048_576
  /// The most bytes of the response's header fields, with interim responses and trailers; beyond it `headersTooLarge`.
  var maximumHeaderBytes = 16_384
  /// The most redirects of a GET that are followed. With 0, and for a POST, a redirect is a response like any other; otherwise one more is
  /// `tooManyRedirects`.
  ///
  /// Each is judged like the first URL. Another origin gets only the header field `Accept`.
  public var maximumRedirects = 0

  /// Makes a request with the default limits.
  public init(_ method: Method, _ url: String, headers: [(name: String, value: String)] = []) {
    self.method = method
    self.url = url
    self.headers = headers
  }
}

extension HTTPClientRequest {
  /// The fields of the message's framing, the connection and the URL (RFC 9110, section 7.6.1; RFC 9112, section 6).
  private static let own: Set<String> = [
    "connection", "content-length", "expect", "host", "http2-settings", "keep-alive", "proxy-authorization", "proxy-connection", "te",
    "trailer", "transfer-encoding", "upgrade",
  ]

  /// Throws if a header field would arrive changed, or as two.
  func checkHeaders() throws(HTTPClientError) {
    for (index, header) in headers.enumerated() {
      func failure(_ reason: String) -> HTTPClientError {
        HTTPClientError(.invalidHeader, "header field \(index + 1) \(reason)")
      }
      guard !header.name.isEmpty, header.name.utf8.allSatisfy({ Self.isTokenByte($0) }) else {
        throw failure("has a name that is no token (RFC 9110, section 5.6.2)")
      }
      if Self.own.contains(header.name.lowercased()) { throw failure("(\(header.name)) is the client's own to send") }
      guard header.value.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }) else {
        throw failure("(\(header.name)) has a control character in its value")
      }
    }
  }

  private static func isTokenByte(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
    default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
    }
  }
}
