/// A response's body that its reader pulls, piece by piece.
///
/// While the reader is slow the server has to wait, so the body is never in memory as a whole.
public final class HTTPPulledBody {
  /// Bytes that may wait for the reader before the server has to wait.
  static let waitingBytes = 256 << 10

  /// The response without its body, or the failure; nil before the end.
  public private(set) var result: Result<HTTPClientResponse, HTTPClientError>?
  /// Judges a piece; nil after the end, since it may hold the owner.
  private var accepts: ((UnsafeRawBufferPointer, HTTPClientResponse) -> Bool)?
  private var call: HTTPClientCall?
  private var waiting: [UInt8] = []
  private var isPaused = false
  private var reader: CheckedContinuation<Void, Never>?

  /// Sends a request; throws what `HTTPClient.send` throws.
  ///
  /// - Parameter accepts: judges each piece when it arrives, also before the reader pulls it. False ends the request with `canceled`.
  public init(
    of request: HTTPClientRequest, from client: HTTPClient, accepts: @escaping (UnsafeRawBufferPointer, HTTPClientResponse) -> Bool
  ) throws(HTTPClientError) {
    self.accepts = accepts
    call = try client.send(request, to: { [self] in take($0, of: $1) }) { [self] result in
      self.result = result
      self.accepts = nil
      wake()
    }
  }

  /// Returns the next bytes, or nil at the end; from one task at a time.
  public func next() async -> [UInt8]? {
    while waiting.isEmpty, result == nil {
      await withCheckedContinuation { continuation in
        // Checked here, since other tasks may run between a check and an await.
        if waiting.isEmpty, result == nil { reader = continuation } else { continuation.resume() }
      }
    }
    guard !waiting.isEmpty else { return nil }
    let piece = waiting
    waiting = []
    if isPaused {
      isPaused = false
      call?.resumeBody()
    }
    return piece
  }

  /// Drops what has not been pulled, and ends the request, unless it has ended.
  public func cancel() {
    waiting = []
    call?.cancel()
  }

  private func wake() {
    reader?.resume()
    reader = nil
  }

  /// Takes a piece from the client.
  func take(_ bytes: UnsafeRawBufferPointer, of response: HTTPClientResponse) -> HTTPBodyDemand {
    guard accepts?(bytes, response) == true else { return .stop }
    waiting += bytes
    wake()
    guard waiting.count >= Self.waitingBytes else { return .more }
    isPaused = true
    return .pause
  }
}
