import EventLoop

/// The answer of an endpoint's owner to a well-formed upgrade.
public enum WebSocketAdmission {
  /// Accepted; the handler gets the connection's events.
  case accept(any WebSocketHandler)
  /// Refused, with an HTTP status of at least 400.
  ///
  /// `retryAfterSeconds` is for 429 and 503.
  case refuse(HTTPStatus, String, retryAfterSeconds: Int? = nil)
}

/// A server's WebSocket endpoint: the checks of an upgrade (RFC 6455, section 4.2).
struct WebSocketRoute {
  enum Judgement {
    /// With the response's bytes.
    case accept(SharedBytes, any WebSocketHandler)
    case refuse(HTTPResponse)
  }

  let configuration: WebSocketConfiguration
  let admit: (HTTPRequest) -> WebSocketAdmission
  /// The shared state of its connections, set by the server.
  var endpoint: WebSocketEndpoint?

  /// - Parameter isAsked: whether the request is a GET by HTTP/1.1 with the fields that ask for WebSocket.
  func judge(_ request: HTTPRequest, isAsked: Bool) -> Judgement {
    let headers = request.headers
    guard isAsked else { return .refuse(Self.upgradeRequired("This is a WebSocket endpoint.\n")) }
    guard headers.values(of: "Sec-WebSocket-Version") == ["13"] else {
      return .refuse(Self.upgradeRequired("Only version 13 of the WebSocket protocol is spoken here.\n"))
    }
    let keys = headers.values(of: "Sec-WebSocket-Key")
    guard keys.count == 1, let key = keys.first, WebSocketKey.isWellFormed(key) else {
      return .refuse(HTTPResponse(.badRequest, text: "Sec-WebSocket-Key must be 16 bytes in base64.\n"))
    }
    guard request.body.isEmpty else { return .refuse(HTTPResponse(.badRequest, text: "An upgrade has no body.\n")) }
    let offered = headers.list(of: "Sec-WebSocket-Protocol")
    let subprotocol = configuration.subprotocols.first { offered.contains($0) }
    if subprotocol == nil, !configuration.subprotocols.isEmpty {
      let names = configuration.subprotocols.joined(separator: ", ")
      return .refuse(HTTPResponse(.badRequest, text: "Offer the subprotocol \(names) in Sec-WebSocket-Protocol.\n"))
    }
    switch admit(request) {
    case .accept(let handler): return .accept(Self.response(key, subprotocol), handler)
    case .refuse(let status, let text, let retryAfterSeconds):
      let headers = retryAfterSeconds.map { [("Retry-After", String($0))] } ?? []
      return .refuse(HTTPResponse(status, text: text, headers: headers))
    }
  }

  private static func upgradeRequired(_ text: String) -> HTTPResponse {
    HTTPResponse(.upgradeRequired, text: text, headers: [("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13")])
  }

  private static func response(_ key: String, _ subprotocol: String?) -> SharedBytes {
    var text = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: "
    text += WebSocketKey.accept(key)
    if let subprotocol { text += "\r\nSec-WebSocket-Protocol: \(subprotocol)" }
    text += "\r\n\r\n"
    return .make(text)
  }
}
