import TestSupport
import Testing

@testable import HTTP

private let ok = "HTTP/1.1 200 OK\r\n"

private struct Misbehavior: Sendable, CustomTestStringConvertible {
  var name: String
  var answer: ScriptedServer.Answer
  var code: HTTPClientError.Code?
  var testDescription: String { name }

  init(_ name: String, _ answer: ScriptedServer.Answer, _ code: HTTPClientError.Code?) {
    (self.name, self.answer, self.code) = (name, answer, code)
  }
}

private let kilobyte = String(repeating: "x", count: 1024)
private let chunk = "400\r\n\(kilobyte)\r\n"

/// Requests allow 10,000 bytes of a body and 4,000 of header fields.
private let misbehaviors: [Misbehavior] = [
  Misbehavior("an endless body in chunks", .endless(ok + "Transfer-Encoding: chunked\r\n\r\n", then: chunk), .bodyTooLarge),
  Misbehavior("an endless body", .endless(ok + "\r\n", then: kilobyte), .bodyTooLarge),
  Misbehavior("one byte too many", .last(ok + "\r\n" + String(repeating: "x", count: 10_001)), .bodyTooLarge),
  Misbehavior("just enough", .last(ok + "\r\n" + String(repeating: "x", count: 10_000)), nil),
  Misbehavior("a length that is too large, and silence", .reply(ok + "Content-Length: 10001\r\n\r\n"), .bodyTooLarge),
  Misbehavior("a length beyond all numbers", .reply(ok + "Content-Length: 99999999999999999999999\r\n\r\n"), .bodyTooLarge),
  Misbehavior("a negative length", .reply(ok + "Content-Length: -1\r\n\r\n"), .protocolError),
  Misbehavior("less than the length", .last(ok + "Content-Length: 100\r\n\r\nabc"), .truncated),
  Misbehavior("nothing of the length", .last(ok + "Content-Length: 100\r\n\r\n"), .truncated),
  Misbehavior("more than the length", .endless(ok + "Content-Length: 5\r\n\r\n", then: kilobyte), nil),
  Misbehavior("chunks without an end", .last(ok + "Transfer-Encoding: chunked\r\n\r\n" + chunk), .truncated),
  Misbehavior("half a chunk", .last(ok + "Transfer-Encoding: chunked\r\n\r\n400\r\nabc"), .truncated),
  Misbehavior("a chunk without a size", .reply(ok + "Transfer-Encoding: chunked\r\n\r\nzz\r\n"), .truncated),
  Misbehavior("no answer", .last(""), .connectionLost),
  Misbehavior("half a head", .last("HTTP/1.1 200 OK\r\nContent-Le"), .connectionLost),
  Misbehavior("another protocol", .reply("SSH-2.0-OpenSSH_9.2p1\r\n"), .protocolError),
  Misbehavior("noise", .endless("\u{1}\u{2}\u{3}\r\n\u{0}\r\n\r\n", then: "\u{7F}\r\n"), .protocolError),
  Misbehavior("an unknown version", .reply("HTTP/9.9 200 OK\r\nContent-Length: 0\r\n\r\n"), .protocolError),
  Misbehavior("many header fields", .endless(ok, then: "X-A: bcd\r\n"), .headersTooLarge),
  Misbehavior("a large header field", .reply(ok + "X: " + String(repeating: "x", count: 5000) + "\r\n\r\n"), .headersTooLarge),
  Misbehavior("a header field without an end", .endless(ok + "X: ", then: kilobyte), .headersTooLarge),
  Misbehavior("a status line without an end", .endless("HTTP/1.1 200 ", then: kilobyte), .headersTooLarge),
  Misbehavior("interim responses without an end", .endless("", then: "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"), .headersTooLarge),
  Misbehavior(
    "a trailer without an end", .endless(ok + "Transfer-Encoding: chunked\r\n\r\n0\r\n", then: "X: yzzzzzzzzzzz\r\n"), .headersTooLarge),
  Misbehavior("a protocol that was not asked for", .reply("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nbytes"), .protocolError),
]

@Suite struct HTTPClientHostileTests {
  @Test(arguments: misbehaviors)
  private func everyMisbehaviorHasItsOutcomeInBoundedMemory(misbehavior: Misbehavior) async throws {
    try await ScriptedServer.with({ _ in misbehavior.answer }) { server, port in
      try await HTTPClientLane.with(try HTTPClientLane.local("127.0.0.1:\(port)")) { lane in
        var request = patient(.get, "http://127.0.0.1:\(port)/?secret", headers: [("X-Key", "secret")])
        request.maximumBodyBytes = 10_000
        request.maximumHeaderBytes = 4_000
        let result = await lane.send(request)
        #expect(result.code == misbehavior.code, "\(result)")
        if case .failure(let error) = result {
          #expect(error.message.contains("127.0.0.1") && !error.message.contains("secret") && !error.message.contains("xxx"), "\(error)")
        }
        // What came of it closes the connection, and what was read is little: the rest is what the kernel's buffers take.
        await server.eventually("its connections have ended") { $0.open == 0 }
        #expect(await server.sent < 50_000_000)
        #expect(await lane.inFlight == 0)
      }
    }
  }

  @Test func headHasALengthAndNoBody() async throws {
    try await ScriptedServer.with({ _ in .reply(ok + "Content-Length: 1000000000\r\n\r\n") }) { _, port in
      try await HTTPClientLane.with(try HTTPClientLane.local("127.0.0.1:\(port)")) { lane in
        let response = try await lane.send(patient(.head, "http://127.0.0.1:\(port)/")).get()
        #expect(response.headers["content-length"] == "1000000000" && response.body.isEmpty)
      }
    }
  }

  @Test func onlyTheLastHeadCounts() async throws {
    let answer =
      "HTTP/1.1 103 Early Hints\r\nX: early\r\n\r\n" + ok + "X:  a  \r\nx: b\r\nTransfer-Encoding: chunked\r\n\r\n"
      + "2\r\nhi\r\n0\r\nX: trailer\r\nHTTP/1.1 500: x\r\n\r\n"
    try await ScriptedServer.with({ _ in .reply(answer) }) { _, port in
      try await HTTPClientLane.with(try HTTPClientLane.local("127.0.0.1:\(port)")) { lane in
        let response = try await lane.send(patient(.get, "http://127.0.0.1:\(port)/")).get()
        #expect(response.status == .ok && response.headers.values(of: "x") == ["a", "b"] && response.body == Array("hi".utf8))
      }
    }
  }

  @Test func aServerThatStopsInTheMiddleMeetsTheTimeLimit() async throws {
    for answer in ["", "HTTP/1.1 2", ok + "X: y\r\n", ok + "Content-Length: 10\r\n\r\nabc"] {
      try await ScriptedServer.with({ _ in .reply(answer) }) { server, port in
        try await HTTPClientLane.with(try HTTPClientLane.local("127.0.0.1:\(port)")) { lane in
          var request = HTTPClientRequest(.get, "http://127.0.0.1:\(port)/")
          request.timeoutMilliseconds = 200
          #expect(await lane.send(request).code == .timedOut)
          await server.eventually("its connections have ended") { $0.open == 0 }
        }
      }
    }
  }

  @Test func aServerThatSpeaksNoTLSIsNoServerForHTTPS() async throws {
    try await ScriptedServer.with({ _ in .reply(ok + "\r\n") }) { _, port in
      var configuration = try HTTPClientLane.local("127.0.0.1:\(port)")
      configuration.schemes = [.https]
      try await HTTPClientLane.with(configuration) { lane in
        var request = patient(.get, "https://127.0.0.1:\(port)/?secret")
        request.timeoutMilliseconds = 500
        let error = try #require(await lane.failure(request))
        // It waits for the end of a head that never comes.
        #expect(error.code == .timedOut && error.message.contains("500 ms") && !error.message.contains("secret"), "\(error)")
      }
    }
  }
}
