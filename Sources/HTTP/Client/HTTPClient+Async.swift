import EventLoop

/// A request that a task waits for, with the task's cancellation.
///
/// - Note: `@unchecked Sendable` because only the loop touches the content: it is set there, and cancellation, which comes from any thread,
///   goes there first.
private final class AwaitedCall: @unchecked Sendable {
  private let loop: EventLoop
  private weak var call: HTTPClientCall?
  private var isCanceled = false

  init(on loop: EventLoop) { self.loop = loop }

  func set(_ call: HTTPClientCall) {
    loop.preconditionOnLoop()
    self.call = call
    if isCanceled { call.cancel() }
  }

  func cancel() {
    loop.execute {
      // For a task that was cancelled before, this comes before `set`.
      self.isCanceled = true
      self.call?.cancel()
    }
  }
}

extension HTTPClient {
  /// Sends a request and returns the response, whatever its status; from a task on the loop.
  ///
  /// A cancelled task stops its request with `canceled`.
  /// - Parameter isolation: the caller's actor, if there is one. Otherwise cancellation's closure would leave its executor.
  public func send(
    _ request: HTTPClientRequest, to bodyHandler: (any HTTPBodyHandler)? = nil, isolation: isolated (any Actor)? = #isolation
  ) async throws(HTTPClientError) -> HTTPClientResponse {
    loop.preconditionOnLoop()
    let awaited = AwaitedCall(on: loop)
    let result = await withTaskCancellationHandler {
      _ = isolation
      return await withCheckedContinuation { (continuation: CheckedContinuation<Result<HTTPClientResponse, HTTPClientError>, Never>) in
        do throws(HTTPClientError) {
          awaited.set(try send(request, to: bodyHandler) { continuation.resume(returning: $0) })
        } catch { continuation.resume(returning: .failure(error)) }
      }
    } onCancel: {
      awaited.cancel()
    }
    return try result.get()
  }
}
