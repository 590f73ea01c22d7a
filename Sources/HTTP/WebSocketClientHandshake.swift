import EventLoop

/// A client's side of one upgrade (RFC 6455, section 4.1): sends the request, checks the response.
final class WebSocketClientHandshake: StreamHandler {
  private static let limits = MessageParser.Limits(fields: 100, bodyBytes: 1024, cutsBody: true)

  private let url: HTTPURL
  private let endpoint: WebSocketEndpoint
  private let stream: Stream
  private let handler: any WebSocketHandler
  private let key = WebSocketKey.make()
  private let parser = MessageParser.responses(limits)
  private var timer: Timer?
  private var whenDone: (() -> Void)?
  private var result: Result<WebSocketConnection, WebSocketClientError>?

  init(_ url: HTTPURL, _ endpoint: WebSocketEndpoint, _ stream: Stream, _ handler: any WebSocketHandler) {
    self.url = url
    self.endpoint = endpoint
    self.stream = stream
    self.handler = handler
  }

  func begin(_ headers: [(name: String, value: String)], withinMilliseconds: Int, _ whenDone: @escaping () -> Void) {
    self.whenDone = whenDone
    timer = Timer(on: endpoint.loop, after: withinMilliseconds) { [unowned self] in end(.failure(isRefused ? refusal : .timedOut(url))) }
    var text = "GET \(url.target) HTTP/1.1\r\nHost: \(url.address)\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    text += "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: \(key)\r\n"
    let subprotocols = endpoint.configuration.subprotocols
    if !subprotocols.isEmpty { text += "Sec-WebSocket-Protocol: \(subprotocols.joined(separator: ", "))\r\n" }
    for (name, value) in headers { text += "\(name.withoutLineBreaks): \(value.withoutLineBreaks)\r\n" }
    text += "\r\n"
    stream.handler = self
    stream.startReading()
    stream.write(.make(text))
  }

  /// The result, which is read once it is done.
  func outcome() throws(WebSocketClientError) -> WebSocketConnection {
    guard let result else { throw .timedOut(url) }
    return try result.get()
  }

  func streamReceived(_ bytes: UnsafeRawBufferPointer) {
    guard result == nil else { return }
    var rest = bytes
    while !rest.isEmpty {
      let (consumed, outcome) = parser.parse(rest)
      rest = UnsafeRawBufferPointer(rebasing: rest[min(consumed, rest.count)...])
      switch outcome {
      case .incomplete:
        // The beginning of a refusal's body is enough, however long it is.
        if parser.body.count >= Self.limits.bodyBytes { end(.failure(refusal)) }
        return
      case .failed(let failure): return end(.failure(.invalidResponse(url, "\(failure)")))
      case .complete:
        // Interim responses (RFC 9110, section 15.2) come before the final one.
        if (100...199).contains(parser.status), parser.status != 101 {
          parser.reset()
          continue
        }
        return judge(rest)
      }
    }
  }

  private func judge(_ rest: UnsafeRawBufferPointer) {
    guard parser.status == 101 else { return end(.failure(refusal)) }
    if let reason = violation { return end(.failure(.invalidResponse(url, reason))) }
    let connection = WebSocketConnection(endpoint, stream, handler)
    connection.start()
    end(.success(connection))
    if !rest.isEmpty { connection.streamReceived(rest) }
  }

  /// Whether a final status other than 101 has come.
  private var isRefused: Bool { parser.isHeadComplete && parser.status >= 200 }

  private var refusal: WebSocketClientError {
    .refused(
      url, status: parser.status, body: String(decoding: parser.body, as: UTF8.self),
      retryAfterSeconds: parser.headers["Retry-After"].flatMap { Int($0) })
  }

  private var violation: String? {
    let headers = parser.headers
    guard headers.hasToken("websocket", in: "Upgrade"), headers.hasToken("upgrade", in: "Connection") else {
      return "the response with 101 upgrades to something else"
    }
    guard headers.values(of: "Sec-WebSocket-Accept") == [WebSocketKey.accept(key)] else {
      return "Sec-WebSocket-Accept does not fit the key"
    }
    if headers["Sec-WebSocket-Extensions"] != nil { return "it chose an extension that was not offered" }
    let chosen = headers.values(of: "Sec-WebSocket-Protocol")
    let offered = endpoint.configuration.subprotocols
    if offered.isEmpty { return chosen.isEmpty ? nil : "it chose a subprotocol that was not offered" }
    if chosen.isEmpty { return "it chose none of the subprotocols \(offered.joined(separator: ", "))" }
    return chosen.count == 1 && offered.contains(chosen[0]) ? nil : "it chose a subprotocol that was not offered"
  }

  private func end(_ result: Result<WebSocketConnection, WebSocketClientError>) {
    guard self.result == nil else { return }
    self.result = result
    timer?.close()
    timer = nil
    if case .failure = result { stream.close() }
    whenDone?()
    whenDone = nil
  }

  func streamDrained() {}

  func streamEnded(_ end: StreamEnd) {
    guard result == nil else { return }
    // A response without a length ends with its connection.
    if isRefused { return self.end(.failure(refusal)) }
    var error = EventLoopError(
      code: .connectionReset, operation: "upgrade \(url)", message: "the server cut the connection before it answered")
    if case .failed(let failure) = end { error = failure }
    self.end(.failure(.connection(error)))
  }
}
