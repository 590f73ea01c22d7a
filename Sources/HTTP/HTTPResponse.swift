public import EventLoop

/// A handler's answer: a status, header fields and a body.
///
/// The server adds `Content-Length`, `Date` and `Connection`. It is not `Sendable`, since a body's source is confined to its loop.
public struct HTTPResponse {
  /// The status.
  public var status: HTTPStatus
  /// Further header fields, in order; line breaks in them are replaced by spaces.
  public var headers: [(name: String, value: String)]
  /// The body; for a HEAD request only its length is sent.
  let body: HTTPBody?

  /// Makes a response from bytes.
  public init(_ status: HTTPStatus, headers: [(name: String, value: String)] = [], body: SharedBytes? = nil) {
    self.status = status
    self.headers = headers
    self.body = body.map { .bytes($0) }
  }

  /// Makes a response whose body is read piece by piece during sending. It can be sent once.
  ///
  /// - Parameter source: closed by the server, or with the response if that is never sent.
  public init(_ status: HTTPStatus, headers: [(name: String, value: String)] = [], source: any HTTPBodySource) {
    self.status = status
    self.headers = headers
    body = .streamed(StreamedBody(source))
  }

  /// Makes a response from a text.
  ///
  /// - Parameter contentType: the type of the text, which is UTF-8.
  public init(
    _ status: HTTPStatus, text: String, contentType: String = "text/plain; charset=utf-8", headers: [(name: String, value: String)] = []
  ) {
    self.init(status, headers: [("Content-Type", contentType)] + headers, body: .make(text))
  }
}

extension HTTPResponse {
  /// Whether the connection lasts after a response.
  enum Persistence {
    /// Kept, as HTTP/1.1 does by default.
    case kept
    /// Kept, and declared so for a client of HTTP/1.0.
    case keptExplicitly
    /// Closed.
    case closed
  }

  /// The head's bytes.
  ///
  /// - Parameter date: the value of `Date` (RFC 9110, section 6.6.1).
  func head(date: String, _ persistence: Persistence) -> SharedBytes {
    var text = "HTTP/1.1 \(status.rawValue) \(status.reason)\r\nDate: \(date)\r\n"
    for (name, value) in headers {
      text += "\(name.withoutLineBreaks): \(value.withoutLineBreaks)\r\n"
    }
    if !status.forbidsBody { text += "Content-Length: \(body?.count ?? 0)\r\n" }
    switch persistence {
    case .kept: break
    case .keptExplicitly: text += "Connection: keep-alive\r\n"
    case .closed: text += "Connection: close\r\n"
    }
    text += "\r\n"
    return .make(text)
  }
}

extension String {
  /// The text with line breaks replaced, so that a caller's text cannot end a header line.
  var withoutLineBreaks: String {
    guard utf8.contains(where: { $0 < 0x20 && $0 != 0x09 }) else { return self }
    return String(decoding: utf8.map { $0 < 0x20 && $0 != 0x09 ? 0x20 : $0 }, as: UTF8.self)
  }
}
