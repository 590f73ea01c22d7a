/// The rules for a request's head that http_parser leaves to its caller.
///
/// They refuse everything that a server in front may read differently, so that no request can hide in another one's body (RFC 9112,
/// sections 3.2, 6.1, 6.3 and 11.2).
struct RequestHead {
  var major: Int
  var minor: Int
  var headers: HTTPHeaders
  /// Whether http_parser will read a chunked body.
  var isChunked: Bool

  /// Why the request is refused; nil if it is valid.
  var failure: MessageFailure? {
    if major != 1 { return .versionUnknown }
    let hosts = headers.occurrences(of: "Host")
    if hosts > 1 || hosts == 0 && minor >= 1 { return .malformed("it needs exactly one Host field") }
    if let failure = transferCodingFailure { return failure }
    if let expectation = headers["Expect"], expectation.lowercased() != "100-continue" { return .expectationUnknown }
    return nil
  }

  private var transferCodingFailure: MessageFailure? {
    let lines = headers.occurrences(of: "Transfer-Encoding")
    if lines == 0 { return isChunked ? .malformed("its transfer coding is unclear") : nil }
    if headers.occurrences(of: "Content-Length") > 0 { return .malformed("it has both Content-Length and Transfer-Encoding") }
    if minor == 0 { return .malformed("HTTP/1.0 has no transfer codings") }
    let codings = headers.list(of: "Transfer-Encoding").map { $0.lowercased() }
    if codings == ["chunked"] { return isChunked && lines == 1 ? nil : .malformed("its transfer coding is unclear") }
    if codings.dropLast().contains("chunked") || codings.isEmpty { return .malformed("the last transfer coding must be 'chunked'") }
    return .transferCodingUnknown
  }
}

/// The parts of a request target (RFC 9112, section 3.2).
struct RequestTarget {
  var path: String
  var query: String?

  /// Nil for forms without a resource of this server: an authority, or an invalid text.
  init?(_ text: String) {
    var rest = Substring(text)
    if !rest.hasPrefix("/") {
      // Clients send the absolute form to proxies, and servers must accept it too.
      guard text.lowercased().hasPrefix("http://") else {
        guard text == "*" else { return nil }
        path = text
        return
      }
      let authority = rest.dropFirst("http://".count)
      rest = authority.firstIndex { $0 == "/" || $0 == "?" }.map { authority[$0...] } ?? ""
      if !rest.hasPrefix("/") { rest = "/" + rest }
    }
    if let fragment = rest.firstIndex(of: "#") { rest = rest[..<fragment] }
    let mark = rest.firstIndex(of: "?")
    path = String(rest[..<(mark ?? rest.endIndex)])
    query = mark.map { String(rest[rest.index(after: $0)...]) }
  }
}
