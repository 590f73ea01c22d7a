/// Answers one request, at once or later. Loop-confined.
///
/// A responder that is let go of without an answer gives 500, so that no client waits for ever.
public final class HTTPResponder {
  private var connection: HTTPConnection?

  init(_ connection: HTTPConnection) { self.connection = connection }

  deinit { connection?.respond(HTTPResponse(.internalServerError, text: "The request was not answered.\n")) }

  /// Whether the client is still there and waits.
  public var isOpen: Bool { connection?.awaitsResponse ?? false }

  /// Sends the response; only the first call counts, and none after the client has gone.
  public func respond(_ response: HTTPResponse) {
    guard let connection else { return }
    self.connection = nil
    connection.respond(response)
  }
}
