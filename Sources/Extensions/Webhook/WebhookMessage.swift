import HTTP
import JSON

/// The request to a webhook for a notification, and the answer.
enum WebhookMessage {
  /// The body of the request: one JSON object.
  static func body(_ request: ExtensionRequest, _ content: MutableContent) -> [UInt8] {
    var writer = JSONWriter(capacity: 1024)
    ExtensionMessage.object(request, content).write(to: &writer)
    return writer.withUnsafeBytes { Array($0) }
  }

  /// The content of an answer.
  ///
  /// - Throws: which rule the answer breaks.
  static func content(_ answer: HTTPClientResponse, of given: MutableContent) throws(ExtensionFailure) -> MutableContent {
    if answer.status == .noContent { return given }
    guard answer.status == .ok else { throw ExtensionFailure("it answers with the status \(answer.status.rawValue)") }
    return try ExtensionMessage.content(answer.body.withUnsafeBytes { try? JSONValue(parsing: $0) }, of: given)
  }
}
