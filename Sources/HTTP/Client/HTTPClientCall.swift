import EventLoop

/// A running request.
///
/// A caller holds it to stop the request; the client does not need that.
public final class HTTPClientCall {
  enum Phase {
    /// It waits for its turn.
    case waiting
    case running(CurlTransfer)
    case ended
  }

  /// Held until the end, so that a client lives while it has requests.
  private var client: HTTPClient?
  let request: HTTPClientRequest
  /// Gets the response's body; nil if that becomes a part of the response.
  private(set) var receive: HTTPClient.BodyReceiver?
  private var completion: ((Result<HTTPClientResponse, HTTPClientError>) -> Void)?
  private let deadline: Timer
  var phase = Phase.waiting
  let number: Int

  // The parts that the present hop sends. After a redirect they differ from the request's.
  private(set) var url: HTTPURL
  private(set) var headers: [(name: String, value: String)]
  private var redirects = 0

  init(
    _ number: Int, _ client: HTTPClient, _ request: HTTPClientRequest, _ url: HTTPURL, _ receive: HTTPClient.BodyReceiver?,
    _ completion: @escaping (Result<HTTPClientResponse, HTTPClientError>) -> Void
  ) {
    self.number = number
    self.client = client
    self.request = request
    self.url = url
    self.receive = receive
    self.completion = completion
    headers = request.headers
    deadline = Timer(on: client.loop)
    deadline.handler = { [unowned self] in self.client?.end(self, .failure(timeout)) }
    deadline.start(after: max(1, request.timeoutMilliseconds))
  }

  var isEnded: Bool { if case .ended = phase { true } else { false } }

  /// Stops the request, unless it has ended. Its connection is closed, and its completion gets `canceled` before this returns.
  public func cancel() {
    client?.end(self, .failure(HTTPClientError(.canceled, "the request to \(url.host) was canceled")))
  }

  /// The failure of a request whose time is over.
  var timeout: HTTPClientError {
    let patience = ReadableText.duration(milliseconds: Int64(request.timeoutMilliseconds))
    return HTTPClientError(.timedOut, "\(url.host) has not answered within \(patience)")
  }

  /// Continues after the body's receiver has returned `pause`.
  public func resumeBody() {
    if case .running(let transfer) = phase { client?.resume(transfer) }
  }

  /// Whether its redirects are followed.
  var mayRedirect: Bool { request.maximumRedirects > 0 && request.method == .get }

  /// Sets the URL of a redirect, and removes everything that must not be sent there (RFC 9110, section 15.4).
  func redirect(to text: String, _ configuration: HTTPClientConfiguration) throws(HTTPClientError) {
    let maximum = request.maximumRedirects
    guard redirects < maximum else {
      throw HTTPClientError(.tooManyRedirects, "\(url.host) redirects once more than the \(maximum) times that are allowed")
    }
    redirects += 1
    let next = try configuration.admit(text, from: url)
    if next.origin != url.origin { headers.removeAll { $0.name.lowercased() != "accept" } }
    url = next
  }

  /// Ends it for its caller; called once.
  func finish(_ result: Result<HTTPClientResponse, HTTPClientError>) {
    phase = .ended
    deadline.close()
    receive = nil
    client = nil
    let completion = completion
    self.completion = nil
    completion?(result)
  }
}
