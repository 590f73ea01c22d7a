public import EventLoop

/// An HTTP client for untrusted hosts (HTTP/1.1 and, over TLS, HTTP/2), on libcurl and one loop.
///
/// It connects only to allowed hosts and addresses, and limits the size and time of responses. It never uses a proxy, a cookie or a
/// password file, and keeps connections to use them again. A request on a kept connection that has died is sent once more on a new one, so
/// a server may see a POST twice: send a key that identifies it. Close it with `close()`.
public final class HTTPClient {
  let loop: EventLoop
  /// Its rules and limits.
  let configuration: HTTPClientConfiguration
  private var multi: CurlMulti?
  private var queue: RequestQueue
  private var calls: [Int: HTTPClientCall] = [:]
  private var lastNumber = 0

  /// Makes a client; call it on the loop.
  public init(on loop: EventLoop, configuration: HTTPClientConfiguration) {
    loop.preconditionOnLoop()
    self.loop = loop
    self.configuration = configuration
    queue = RequestQueue(maximum: configuration.maximumConnections, maximumPerOrigin: configuration.maximumConnectionsPerHost)
    multi = CurlMulti(on: loop, configuration) { [weak self] transfer, outcome in self?.done(transfer, outcome) }
  }

  /// The requests that have not ended, with the waiting ones.
  public var inFlight: Int { calls.count }

  /// Takes a piece of a response's body, which is valid only during the call. Called on the loop, never for a redirect that is followed.
  ///
  /// The response has status and header fields, always the same for one request.
  public typealias BodyReceiver = (_ bytes: UnsafeRawBufferPointer, _ response: HTTPClientResponse) -> HTTPBodyDemand

  /// Sends a request.
  ///
  /// - Parameters:
  ///   - receive: gets the response's body instead of the response; held until the end.
  ///   - completion: called on the loop, once and never inside this call, with the response of any status, or the failure.
  /// - Throws: immediate failures: `invalidURL`, `invalidHeader`, `schemeRefused`, `hostRefused`, `tooMany`, or after `close` `canceled`.
  ///   Then the completion is not called.
  @discardableResult
  public func send(
    _ request: HTTPClientRequest, to receive: BodyReceiver?,
    completion: @escaping (Result<HTTPClientResponse, HTTPClientError>) -> Void
  ) throws(HTTPClientError) -> HTTPClientCall {
    loop.preconditionOnLoop()
    let url = try configuration.admit(request.url)
    try request.checkHeaders()
    guard multi != nil else { throw HTTPClientError(.canceled, "the client is closed") }
    guard calls.count < configuration.maximumInFlight else {
      throw HTTPClientError(.tooMany, "there are \(configuration.maximumInFlight) requests in flight, and the client takes no more")
    }
    lastNumber += 1
    let call = HTTPClientCall(lastNumber, self, request, url, receive, completion)
    calls[call.number] = call
    queue.add(call.number, of: url.origin)
    startNext()
    return call
  }

  /// Stops every request with `canceled`, and closes every connection.
  public func close() {
    loop.preconditionOnLoop()
    guard let multi else { return }
    self.multi = nil
    for call in calls.values { call.cancel() }
    multi.close()
  }

  // MARK: Running requests

  private func startNext() {
    guard let multi else { return }
    while let number = queue.next() {
      guard let call = calls[number] else { preconditionFailure("a request that waits for its turn has not ended") }
      call.phase = .running(multi.add(call, configuration))
    }
  }

  private func done(_ transfer: CurlTransfer, _ outcome: CurlTransfer.Outcome) {
    let call = transfer.call
    guard !call.isEnded else { return }
    switch outcome {
    case .response(let response): end(call, .success(response))
    case .failure(let error): end(call, .failure(error))
    case .redirect(let url): follow(call, to: url)
    }
  }

  private func follow(_ call: HTTPClientCall, to text: String) {
    queue.end(call.url.origin)
    call.phase = .waiting
    do throws(HTTPClientError) {
      try call.redirect(to: text, configuration)
      queue.add(call.number, of: call.url.origin)
      startNext()
    } catch { end(call, .failure(error)) }
  }

  func resume(_ transfer: CurlTransfer) {
    loop.preconditionOnLoop()
    multi?.resume(transfer)
  }

  /// Ends a request in any state.
  func end(_ call: HTTPClientCall, _ result: Result<HTTPClientResponse, HTTPClientError>) {
    loop.preconditionOnLoop()
    let phase = call.phase
    call.phase = .ended
    calls[call.number] = nil
    switch phase {
    case .waiting: queue.withdraw(call.number, of: call.url.origin)
    case .running(let transfer):
      multi?.remove(transfer)
      queue.end(call.url.origin)
    case .ended: return
    }
    startNext()
    call.finish(result)
  }
}
