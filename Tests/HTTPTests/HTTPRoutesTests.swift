import HTTP
import TestSupport
import Testing

@Suite struct HTTPRoutesTests {
  private static let answers: [(request: String, contains: [String])] = [
    ("GET /media/a", ["200 OK", "\r\n\r\nprefix /media/a"]),
    ("GET /media/a/b/../c%2F?x=1", ["200 OK", "\r\n\r\nprefix /media/a/b/../c%2F"]),
    ("GET /media//", ["200 OK", "\r\n\r\nprefix /media//"]),
    ("GET /media/deep", ["200 OK", "\r\n\r\nprefix /media/deep"]),
    ("GET /media/deep/", ["200 OK", "\r\n\r\nprefix /media/deep/"]),
    ("GET /media/deep/a", ["200 OK", "\r\n\r\ndeep prefix /media/deep/a"]),
    ("PUT /media/deep/a", ["200 OK", "\r\n\r\ndeep prefix, put /media/deep/a"]),
    ("HEAD /media/a", ["200 OK", "Content-Length: 15\r\n"]),
    ("GET /media/", ["404"]), ("GET /media", ["404"]), ("GET /Media/a", ["404"]), ("GET /x/media/a", ["404"]),
    ("POST /media/a", ["405", "Allow: GET, HEAD\r\n"]),
    ("DELETE /media/deep/a", ["405", "Allow: GET, HEAD, PUT\r\n"]),
    ("POST /media/path", ["200 OK", "\r\n\r\npath /media/path"]),
    ("GET /media/path", ["405", "Allow: POST\r\n"]),
    ("GET /media/path/a", ["200 OK", "\r\n\r\nprefix /media/path/a"]),
  ]

  @Test func aPathBelongsToItselfOrElseToTheLongestPrefix() async throws {
    try await ServerFixture.with { _, port in
      for (request, parts) in Self.answers {
        let socket = try RawSocket(port: port)
        try socket.send("\(request) HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        let response = String(decoding: try socket.readToEnd(), as: UTF8.self)
        for part in parts { #expect(response.contains(part), "\(request): \(response)") }
        if request.hasPrefix("HEAD") { #expect(response.hasSuffix("\r\n\r\n")) }
      }
    }
  }
}
