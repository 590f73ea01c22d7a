import EventLoop

extension HTTPClient {
  /// Sends a request and returns the response, whatever its status; from a task on the loop.
  ///
  /// A cancelled task stops its request with `canceled`.
  public func send(
    _ request: HTTPClientRequest, isolation: isolated (any Actor)? = #isolation
  ) async throws(HTTPClientError) -> HTTPClientResponse {
    let result: Result<HTTPClientResponse, HTTPClientError> = await loop.wait { continuation in
      do throws(HTTPClientError) {
        let call = try send(request, to: nil) { continuation.resume(returning: $0) }
        return { [weak call] in call?.cancel() }
      } catch {
        continuation.resume(returning: .failure(error))
        return {}
      }
    }
    return try result.get()
  }
}
