import HTTP
import JSON
import Notifications

/// The answer to one request of a publisher.
struct RequestAnswer: Error {
  let status: HTTPStatus
  /// The request's `apns-id`, if it has one.
  var id: String?
  /// Apple's word; nil for a request that Kafka has.
  var reason: String?
  var field: String?
  var rule: String?
  /// A warning for each unknown field.
  var warnings: [String] = []

  /// A refusal.
  init(_ status: HTTPStatus, _ reason: String, _ field: String?, _ rule: String, id: String? = nil) {
    (self.status, self.reason, self.field, self.rule, self.id) = (status, reason, field, rule, id)
  }

  /// A request that is known.
  init(_ status: HTTPStatus, id: String, _ warnings: [String] = []) { (self.status, self.id, self.warnings) = (status, id, warnings) }

  /// The request breaks a rule of APNs.
  init(_ rejection: Rejection, id: String?) {
    let status: HTTPStatus = rejection.reason == .payloadTooLarge ? .contentTooLarge : .badRequest
    self.init(status, rejection.reason.rawValue, "\(rejection.field)", rejection.rule, id: id)
  }

  /// A body, or a line of it, that is no request.
  init(_ error: LineError) { self.init(.badRequest, "BadRequestParams", error.field, error.description) }

  /// The HTTP request reached no route.
  init(unrouted status: HTTPStatus, _ rule: String) {
    let (reason, field) =
      switch status {
      case .notFound: ("BadPath", "path")
      case .methodNotAllowed: ("MethodNotAllowed", "method")
      case .contentTooLarge: ("PayloadTooLarge", "body")
      case .serviceUnavailable: ("ServiceUnavailable", "connection")
      default: ("BadRequest", "request")
      }
    self.init(status, reason, field, rule)
  }

  /// Kafka or this worker cannot do it now.
  static func unavailable(_ rule: String) -> RequestAnswer { RequestAnswer(.serviceUnavailable, "ServiceUnavailable", nil, rule) }

  /// It is unknown whether Kafka has the request.
  static var unacknowledged: RequestAnswer {
    .unavailable("Kafka did not acknowledge the request in time. It may have arrived: send it again with the same apns-id.")
  }

  /// The request was not passed to Kafka.
  static var unsent: RequestAnswer { .unavailable("Kafka is too slow. The request was not published: send it again.") }

  /// Writes it as an object.
  ///
  /// - Parameter line: its number in a body of many; nil for a request that has the response's own status.
  func json(line: Int? = nil) -> JSONValue {
    .object(present: [
      "line": line, "status": line.map { _ in status.rawValue }, "apnsId": id, "reason": reason, "field": field, "rule": rule,
      // A plain nil would become the JSON null here.
      "warnings": warnings.isEmpty ? Optional.none : JSONValue.array(warnings.map { .string($0) }),
    ])
  }

  /// The HTTP response to a single request.
  var response: HTTPResponse {
    var headers: [(name: String, value: String)] = id.map { [("apns-id", $0)] } ?? []
    if status == .unauthorized { headers.append(("WWW-Authenticate", "Bearer")) }
    if status == .serviceUnavailable || status == .tooManyRequests { headers.append(("Retry-After", "1")) }
    return HTTPResponse(status, text: json().text + "\n", contentType: "application/json", headers: headers)
  }
}
