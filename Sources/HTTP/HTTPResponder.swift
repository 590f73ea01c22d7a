/// Answers one request, at once or later.
///
/// A responder that is released without an answer sends 500, so that no client waits for ever.
public final class HTTPResponder {
  private var connection: HTTPConnection?

  init(_ connection: HTTPConnection) { self.connection = connection }

  deinit { connection?.respond(HTTPResponse(.internalServerError, text: "The request was not answered.\n")) }

  /// Whether the client is still connected and waits.
  var isOpen: Bool { connection?.awaitsResponse ?? false }

  /// Sends the response. Only the first call has an effect, and only while the client is connected.
  public func respond(_ response: HTTPResponse) {
    guard let connection else { return }
    self.connection = nil
    connection.respond(response)
  }
}
