import EventLoop
import HTTP
import JSON

/// The built-in extension `webhook`: asks a team's own service for the content. Each lane has one, with connections that it uses again.
actor Webhook: LoopActor, ServiceExtension {
  nonisolated let loop: EventLoop
  private let settings: WebhookSettings
  private let signature: WebhookSignature
  private let client: HTTPClient

  /// Call it on the loop.
  init(_ settings: WebhookSettings, on loop: EventLoop) {
    self.loop = loop
    self.settings = settings
    signature = WebhookSignature(settings.keys)
    client = HTTPClient(on: loop, configuration: settings.configuration)
  }

  func didReceive(_ request: ExtensionRequest, _ bestAttempt: BestAttempt) async throws -> MutableContent {
    let given = bestAttempt.content
    let body = Array(ExtensionMessage.object(request, given).text.utf8)
    var backoff = Self.firstWait
    for attempt in 1... {
      var wait = backoff
      do {
        let answer = try await client.send(message(request, body))
        guard attempt < settings.attempts, Self.isPassing(answer.status) else { return try Self.content(answer, of: given) }
        wait = answer.headers.retryMilliseconds ?? backoff
        guard wait <= Self.longestRetry else { return try Self.content(answer, of: given) }
      } catch let error as HTTPClientError {
        guard attempt < settings.attempts, error.isRetriable, !Task.isCancelled else { throw ExtensionFailure(error.message) }
      }
      await loop.sleep(milliseconds: wait)
      try Task.checkCancellation()
      backoff = min(2 * backoff, Self.longestWait)
    }
    preconditionFailure("the last attempt returns or throws")
  }

  /// The content of an answer; the given one if it has none (204).
  private static func content(_ answer: HTTPClientResponse, of given: MutableContent) throws(ExtensionFailure) -> MutableContent {
    if answer.status == .noContent { return given }
    guard answer.status == .ok else { throw ExtensionFailure("it answers with the status \(answer.status.rawValue)") }
    return try ExtensionMessage.content(answer.body.withUnsafeBytes { try? JSONValue(parsing: $0) }, of: given)
  }

  private static let (firstWait, longestWait) = (100, 2_000)
  /// A service that asks to wait longer has failed: the notification would be late, and would hold the place of another.
  private static let longestRetry = 5_000

  /// Whether the same message may soon get another answer (RFC 9110, section 15.6; RFC 6585, section 4).
  private static func isPassing(_ status: HTTPStatus) -> Bool { [429, 502, 503, 504].contains(status.rawValue) }

  private func message(_ request: ExtensionRequest, _ body: [UInt8]) -> HTTPClientRequest {
    let signed = signature.headers(id: request.idempotencyKey, seconds: WallClock.seconds(), body: body)
    // W3C Trace Context: the service's own spans belong to the request's trace.
    let trace = request.traceparent.map { [("traceparent", $0)] } ?? []
    var message = HTTPClientRequest(
      .post(body: body), settings.url, headers: [("content-type", "application/json"), ("accept", "application/json")] + signed + trace)
    message.timeoutMilliseconds = settings.timeoutMilliseconds
    message.maximumBodyBytes = ExtensionMessage.longestAnswer
    return message
  }

  func close() { client.close() }
}

extension HTTPHeaders {
  /// The wait before another attempt, if it is short enough; nil if the field has no seconds (RFC 9110, section 10.2.3).
  fileprivate var retryMilliseconds: Int? {
    guard let text = self["retry-after"], let seconds = Int(text), seconds >= 0 else { return nil }
    return min(seconds, CallBudget.longestMilliseconds / 1000) * 1000
  }
}
