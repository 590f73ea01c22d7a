import EventLoop

/// A running request. Loop-confined.
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
  private(set) var bodyHandler: (any HTTPBodyHandler)?
  private var completion: ((Result<HTTPClientResponse, HTTPClientError>) -> Void)?
  private let deadline: Timer
  var phase = Phase.waiting
  let number: Int

  // The parts that the present hop sends. After a redirect they differ from the request's.
  private(set) var url: HTTPURL
  private(set) var method: HTTPClientRequest.Method
  private(set) var headers: [(name: String, value: String)]
  private var redirects = 0

  init(
    _ number: Int, _ client: HTTPClient, _ request: HTTPClientRequest, _ url: HTTPURL, _ bodyHandler: (any HTTPBodyHandler)?,
    _ completion: @escaping (Result<HTTPClientResponse, HTTPClientError>) -> Void
  ) {
    self.number = number
    self.client = client
    self.request = request
    self.url = url
    self.bodyHandler = bodyHandler
    self.completion = completion
    method = request.method
    headers = request.headers
    deadline = Timer(on: client.loop)
    deadline.handler = { [unowned self] in
      end(.timedOut, "\(self.url.host) has not answered within \(ReadableText.duration(milliseconds: Int64(request.timeoutMilliseconds)))")
    }
    deadline.start(after: max(1, request.timeoutMilliseconds))
  }

  var isEnded: Bool { if case .ended = phase { true } else { false } }

  /// Stops the request, unless it has ended. Its connection is closed, and its completion gets `canceled` before this returns.
  public func cancel() {
    end(.canceled, "the request to \(url.host) was canceled")
  }

  private func end(_ code: HTTPClientError.Code, _ message: String) {
    client?.end(self, .failure(HTTPClientError(code, url, message)))
  }

  /// Continues after the body's handler has returned `pause`.
  public func resumeBody() {
    if case .running(let transfer) = phase { client?.resume(transfer) }
  }

  /// Sets the URL of a redirect, and removes everything that must not be sent there (RFC 9110, section 15.4).
  func redirect(to text: String, _ status: HTTPStatus, _ configuration: HTTPClientConfiguration) throws(HTTPClientError) {
    let maximum = min(request.maximumRedirects, HTTPClientRequest.redirectsAtMost)
    guard redirects < maximum else {
      throw HTTPClientError(.tooManyRedirects, url, "\(url.host) redirects once more than the \(maximum) times that are allowed")
    }
    redirects += 1
    let next = try configuration.admit(text, from: url)
    if case .post = method, (301...303).contains(status.rawValue) {
      method = .get
      headers.removeAll { $0.name.lowercased().hasPrefix("content-") }
    }
    if next.origin != url.origin {
      if case .post = method {
        throw HTTPClientError(.hostRefused, url, "\(url.host) redirects a POST to \(next.origin), and a body goes to one origin only")
      }
      headers = HTTPClientRequest.carried(headers)
    }
    url = next
  }

  /// Ends it for its caller; called once.
  func finish(_ result: Result<HTTPClientResponse, HTTPClientError>) {
    phase = .ended
    deadline.close()
    bodyHandler = nil
    client = nil
    let completion = completion
    self.completion = nil
    completion?(result)
  }
}
