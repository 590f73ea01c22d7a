import TestSupport
import Testing

@testable import HTTP

private func redirect(_ status: Int, to location: String, body: String = "gone") -> ScriptedServer.Answer {
  .reply("HTTP/1.1 \(status) Moved\r\nLocation: \(location)\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)")
}

private let arrived = ScriptedServer.Answer.reply("HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\narrived")

private func following(_ method: HTTPClientRequest.Method, _ url: String, _ maximum: Int = 3) -> HTTPClientRequest {
  let headers = [(name: "Authorization", value: "secret"), (name: "Accept", value: "image/*"), (name: "Content-Type", value: "text/plain")]
  var request = patient(method, url, headers: headers)
  request.maximumRedirects = maximum
  return request
}

@Suite struct HTTPClientRedirectTests {
  @Test func redirectsAreFollowedOnTheSameConnection() async throws {
    try await ScriptedServer.with({ request in
      if request.hasPrefix("GET /a/b?q ") { return redirect(302, to: "../c#part") }
      return request.hasPrefix("GET /c ") ? redirect(308, to: "//\(request.host)/d") : arrived
    }) { server, port in
      try await HTTPClientLane.with(try HTTPClientLane.local("127.0.0.1:\(port)")) { lane in
        #expect(await lane.send(following(.get, "http://127.0.0.1:\(port)/a/b?q")).text == "arrived")
        let requests = await server.requests
        #expect(requests.map { $0.prefix { $0 != "\r\n" } } == ["GET /a/b?q HTTP/1.1", "GET /c HTTP/1.1", "GET /d HTTP/1.1"])
        #expect(requests.allSatisfy { $0.contains("Authorization: secret\r\n") })
        #expect(await server.connections == 1)
      }
    }
  }

  @Test func withoutLeaveARedirectIsAResponse() async throws {
    try await ScriptedServer.with({ _ in redirect(301, to: "/x") }) { server, port in
      try await HTTPClientLane.with(try HTTPClientLane.local("127.0.0.1:\(port)")) { lane in
        let response = try await lane.send(following(.get, "http://127.0.0.1:\(port)/", 0)).get()
        #expect(response.status.rawValue == 301 && response.headers["location"] == "/x" && response.body == Array("gone".utf8))
        #expect(await server.requests.count == 1)
      }
    }
  }

  @Test func theRedirectOfAPostIsAResponse() async throws {
    try await ScriptedServer.with({ _ in redirect(307, to: "/end") }) { server, port in
      try await HTTPClientLane.with(try HTTPClientLane.local("127.0.0.1:\(port)")) { lane in
        #expect(await lane.send(following(.post(body: Array("text".utf8)), "http://127.0.0.1:\(port)/begin")).status == 307)
        #expect(await server.requests.count == 1)
      }
    }
  }

  @Test func anotherOriginGetsNoCredentials() async throws {
    try await ScriptedServer.with({ _ in arrived }) { other, otherPort in
      try await ScriptedServer.with({ _ in redirect(307, to: "http://127.0.0.1:\(otherPort)/there") }) { _, port in
        try await HTTPClientLane.with(try HTTPClientLane.local("127.0.0.1:\(port)", "127.0.0.1:\(otherPort)")) { lane in
          #expect(await lane.send(following(.get, "http://127.0.0.1:\(port)/keep")).text == "arrived")
          let request = try #require(await other.requests.first)
          #expect(request.hasPrefix("GET /there ") && request.contains("Accept: image/*\r\n"))
          #expect(!request.contains("secret") && !request.contains("text"))
        }
      }
    }
  }

  @Test(arguments: [
    ("http://127.0.0.1:1/", HTTPClientError.Code.hostRefused), ("http://evil.example/?secret", .hostRefused),
    ("http://127.0.0.1.evil.example/", .hostRefused), ("https://refused.test/", .schemeRefused), ("file:///etc/passwd", .schemeRefused),
    ("ftp://refused.test/", .schemeRefused), ("http://u:secret@refused.test/", .invalidURL), ("http://2130706433/", .hostRefused),
    ("http://[fe80::1%25lo]/", .invalidURL), ("http://refused.test/", .addressRefused), ("http://127.0.0.2/", .addressRefused),
    ("http://169.254.169.254/latest/meta-data/", .addressRefused), ("http://[::ffff:10.0.0.1]/", .addressRefused),
  ])
  func everyHopIsJudgedAsTheFirst(location: String, code: HTTPClientError.Code) async throws {
    try await ScriptedServer.with({ _ in redirect(302, to: location) }) { server, port in
      var configuration = try HTTPClientLane.local(
        "127.0.0.1:\(port)", "refused.test", "127.0.0.2", "169.254.169.254", "[::ffff:10.0.0.1]", admitting: ["127.0.0.1"])
      configuration.pinned = [pinned("refused.test", 80, ["10.0.0.1"])]
      try await HTTPClientLane.with(configuration) { lane in
        let error = try #require(await lane.failure(following(.get, "http://127.0.0.1:\(port)/")))
        #expect(error.code == code, "\(error)")
        #expect(!error.message.contains("secret") && !error.message.contains("passwd"))
        #expect(await server.requests.count == 1)
      }
    }
  }

  @Test func httpsIsNotLeftForHTTP() throws {
    var configuration = HTTPClientConfiguration(hosts: try HTTPHostRule(["a.example"]))
    configuration.schemes = [.http, .https]
    let secure = try HTTPURL("https://a.example/")
    #expect(throws: HTTPClientError.self) { try configuration.admit("http://a.example/", from: secure) }
    #expect(try configuration.admit("https://a.example/x", from: secure).target == "/x")
    #expect(try configuration.admit("https://a.example/x", from: HTTPURL("http://a.example/")).scheme == .https)
  }

  @Test(arguments: [1, 3, 5]) func aLoopOfRedirectsEnds(maximum: Int) async throws {
    try await ScriptedServer.with({ _ in redirect(302, to: "/again") }) { server, port in
      try await HTTPClientLane.with(try HTTPClientLane.local("127.0.0.1:\(port)")) { lane in
        let error = await lane.failure(following(.get, "http://127.0.0.1:\(port)/", maximum))
        #expect(error?.code == .tooManyRedirects && error?.isRetriable == false)
        #expect(await server.requests.count == maximum + 1)
      }
    }
  }

  @Test func theTimeLimitCountsForAllHops() async throws {
    try await ScriptedServer.with({ $0.contains(" /held ") ? .silence : redirect(302, to: "/held") }) { server, port in
      try await HTTPClientLane.with(try HTTPClientLane.local("127.0.0.1:\(port)")) { lane in
        var request = following(.get, "http://127.0.0.1:\(port)/")
        request.timeoutMilliseconds = 500
        #expect(await lane.send(request).code == .timedOut)
        // Where the time was up between two hops, the connection may serve another request, and stays.
        await server.eventually("it has ended, or was not asked") { server in
          server.open == 0 || !server.requests.contains { $0.contains(" /held ") }
        }
      }
    }
  }

  @Test func aRedirectsBodyIsBoundedAndNobodysToRead() async throws {
    let piece = String(repeating: "x", count: 10_000)
    try await ScriptedServer.with({ request in
      request.contains(" /endless ")
        ? .endless("HTTP/1.1 302 Found\r\nLocation: /end\r\n\r\n", then: piece)
        : request.contains(" /large ") ? redirect(302, to: "/end", body: piece) : arrived
    }) { server, port in
      try await HTTPClientLane.with(try HTTPClientLane.local("127.0.0.1:\(port)")) { lane in
        var request = following(.get, "http://127.0.0.1:\(port)/large")
        request.maximumBodyBytes = 10
        await lane.collect(request) { _ in .more }
        #expect(await lane.wait { $0.successes == 1 })
        #expect(await lane.withBody { $0.bytes == Array("arrived".utf8) && $0.statuses == [.ok] })
        request.url = "http://127.0.0.1:\(port)/endless"
        #expect(await lane.send(request).code == .bodyTooLarge)
      }
    }
  }
}

extension String {
  /// What `Host` says in a request.
  fileprivate var host: Substring { split(separator: "\r\n").first { $0.hasPrefix("Host: ") }?.dropFirst(6) ?? "" }
}
