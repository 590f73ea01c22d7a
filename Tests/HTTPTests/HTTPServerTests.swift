import EventLoop
import HTTP
import TestSupport
import Testing

private struct Exchange: Sendable, CustomTestStringConvertible {
  var name: String
  var request: String
  var status: Int
  var contains: [String] = []
  var testDescription: String { name }
}

private let tooManyFields = (0..<120).map { "X-\($0): 1\r\n" }.joined()

private func chunked(_ body: String) -> String { "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\(body)" }

private let exchanges = [
  Exchange(
    name: "GET", request: "GET /hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", status: 200,
    contains: ["Content-Length: 5\r\n", "Date: ", "Connection: close\r\n", "\r\n\r\nhello"]),
  Exchange(name: "HTTP/1.0 closes", request: "GET /hello HTTP/1.0\r\n\r\n", status: 200, contains: ["Connection: close\r\n"]),
  Exchange(name: "absolute form", request: "GET http://a/hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", status: 200),
  Exchange(
    name: "query and fields", request: "GET /describe?a=1&name=J%C3%B6rg+K HTTP/1.1\r\nHost: a\r\nX-CASE:  v \r\nConnection: close\r\n\r\n",
    status: 200, contains: ["/describe\na=1&name=J%C3%B6rg+K\nJörg K\nv"]),
  Exchange(
    name: "body by length", request: "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody", status: 200,
    contains: ["\r\n\r\nbody"]),
  Exchange(
    name: "chunked body with extension and trailer",
    request:
      "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\nConnection: close\r\n\r\n3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nT: v\r\n\r\n",
    status: 200, contains: ["\r\n\r\nabcde"]),
  Exchange(
    name: "dropped responder", request: "GET /dropped HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", status: 500),
  Exchange(name: "unknown path", request: "GET /nothing HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", status: 404),
  Exchange(
    name: "wrong method", request: "DELETE /hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", status: 405,
    contains: ["Allow: GET, HEAD\r\n"]),
  Exchange(
    name: "other upgrades are declined",
    request: "GET /hello HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, close\r\nUpgrade: h2c\r\n\r\n", status: 200, contains: ["hello"]),
  Exchange(name: "garbage", request: "\u{16}\u{3}\u{1}garbage\r\n\r\n", status: 400),
  Exchange(name: "request line that ends in LF", request: "GET /hello HTTP/1.1\nHost: a\r\n\r\n", status: 400),
  Exchange(name: "field that ends in LF", request: "GET /hello HTTP/1.1\r\nHost: a\n\r\n", status: 400),
  Exchange(name: "head that ends in LF", request: "GET /hello HTTP/1.1\r\nHost: a\r\n\n", status: 400),
  Exchange(name: "all lines end in LF", request: "GET /hello HTTP/1.1\nHost: a\n\n", status: 400),
  Exchange(name: "line that ends in CR", request: "GET /hello HTTP/1.1\r\nHost: a\rX: 1\r\n\r\n", status: 400),
  Exchange(name: "head that ends in CR", request: "GET /hello HTTP/1.1\r\nHost: a\r\n\rX", status: 400),
  Exchange(name: "LF before the request", request: "\nGET /hello HTTP/1.1\r\nHost: a\r\n\r\n", status: 400),
  Exchange(
    name: "empty line before the request", request: "\r\nGET /hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", status: 200),
  Exchange(name: "folded with a space", request: "GET /hello HTTP/1.1\r\nHost: a\r\nX: 1\r\n 2\r\n\r\n", status: 400),
  Exchange(name: "folded with a tab", request: "GET /hello HTTP/1.1\r\nHost: a\r\nX: 1\r\n\t2\r\n\r\n", status: 400),
  Exchange(name: "first field folded", request: "GET /hello HTTP/1.1\r\n Host: a\r\n\r\n", status: 400),
  Exchange(name: "HTTQ", request: "GET /hello HTTQ/1.1\r\nHost: a\r\n\r\n", status: 400),
  Exchange(name: "http", request: "GET /hello Http/1.1\r\nHost: a\r\n\r\n", status: 400),
  Exchange(name: "no version", request: "GET /hello\r\nHost: a\r\n\r\n", status: 400),
  Exchange(name: "chunk without its line end", request: chunked("3\r\nabcXX0\r\n\r\n"), status: 400),
  Exchange(name: "chunk that ends in LF", request: chunked("3\r\nabc\n0\r\n\r\n"), status: 400),
  Exchange(name: "chunk's size that ends in LF", request: chunked("3\nabc\r\n0\r\n\r\n"), status: 400),
  Exchange(name: "chunk's size that ends in CR", request: chunked("3\rXabc\r\n0\r\n\r\n"), status: 400),
  Exchange(name: "chunk's extension with LF", request: chunked("3;x\nabc\r\nabc\r\n0\r\n\r\n"), status: 400),
  Exchange(name: "trailer that ends in LF", request: chunked("3\r\nabc\r\n0\r\nT: v\n\r\n"), status: 400),
  Exchange(name: "folded trailer", request: chunked("3\r\nabc\r\n0\r\nT: v\r\n w\r\n\r\n"), status: 400),
  Exchange(name: "last chunk that ends in LF", request: chunked("3\r\nabc\r\n0\r\n\n"), status: 400),
  Exchange(name: "no host", request: "GET /hello HTTP/1.1\r\n\r\n", status: 400),
  Exchange(name: "two hosts", request: "GET /hello HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", status: 400),
  Exchange(name: "authority form", request: "CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n", status: 400),
  Exchange(name: "unknown version", request: "GET /hello HTTP/2.0\r\nHost: a\r\n\r\n", status: 505),
  Exchange(name: "space in a field name", request: "GET /hello HTTP/1.1\r\nHost: a\r\nX Y: 1\r\n\r\n", status: 400),
  Exchange(
    name: "length and coding",
    request: "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", status: 400),
  Exchange(
    name: "two lengths", request: "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nbody", status: 400),
  Exchange(name: "negative length", request: "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", status: 400),
  Exchange(
    name: "chunked is not last", request: "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, gzip\r\n\r\n", status: 400),
  Exchange(
    name: "chunked twice", request: "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
    status: 400),
  Exchange(
    name: "chunked, hidden by a prefix", request: "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n", status: 501),
  Exchange(
    name: "unknown coding", request: "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", status: 501),
  Exchange(name: "coding in 1.0", request: "POST /echo HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", status: 400),
  Exchange(
    name: "bad chunk", request: "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", status: 400),
  Exchange(name: "unknown expectation", request: "GET /hello HTTP/1.1\r\nHost: a\r\nExpect: tea\r\n\r\n", status: 417),
  Exchange(name: "body too large", request: "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\n\r\n", status: 413),
  Exchange(
    name: "chunks too large",
    request: "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n" + String(repeating: "x", count: 1001),
    status: 413),
  Exchange(
    name: "head too large", request: "GET /hello HTTP/1.1\r\nHost: a\r\nX: " + String(repeating: "x", count: 17_000) + "\r\n\r\n",
    status: 431
  ),
  Exchange(
    name: "endless head", request: "GET /hello HTTP/1.1\r\nHost: a\r\nX: " + String(repeating: "x", count: 17_000), status: 431),
  Exchange(name: "endless target", request: "GET /" + String(repeating: "x", count: 17_000), status: 431),
  Exchange(name: "too many fields", request: "GET /hello HTTP/1.1\r\nHost: a\r\n\(tooManyFields)\r\n", status: 431),
  Exchange(
    name: "endless trailer",
    request: "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nT: " + String(repeating: "x", count: 17_000),
    status: 431),
]

private func small() -> HTTPServerConfiguration {
  var configuration = ServerFixture.quick()
  configuration.maximumBodyBytes = 1000
  return configuration
}

/// The status of a response; 0 when there is none.
private func status(_ response: String) -> Int {
  let parts = response.split(separator: " ", maxSplits: 2)
  return parts.count > 1 && parts[0] == "HTTP/1.1" ? Int(parts[1]) ?? 0 : 0
}

/// What `Retry-After` says, in seconds; -1 where it is absent.
private func retryAfter(_ response: String) -> Int {
  response.split(separator: "\r\n").first { $0.hasPrefix("Retry-After: ") }.flatMap { Int($0.dropFirst(13)) } ?? -1
}

private let upgradeRequest = [
  "GET /ws HTTP/1.1", "Host: a", "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13",
  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Protocol: carillon.v1", "\r\n",
].joined(separator: "\r\n")

@Suite struct HTTPServerTests {
  @Test(arguments: [false, true], [false, true])
  func everyRequestHasItsAnswer(byteByByte: Bool, overTLS: Bool) async throws {
    try await ServerFixture.with(small(), overTLS: overTLS) { _, port in
      // Byte by byte the largest would take minutes.
      for exchange in exchanges where !byteByByte || exchange.request.utf8.count < 10_000 {
        let socket = try RawSocket(port: port)
        if byteByByte { socket.sendByteByByte(Array(exchange.request.utf8)) } else { try socket.send(exchange.request) }
        let response = String(decoding: try socket.readToEnd(), as: UTF8.self)
        #expect(status(response) == exchange.status, "\(exchange.name): \(response.prefix(200))")
        for part in exchange.contains { #expect(response.contains(part), "\(exchange.name): \(response)") }
      }
    }
  }

  @Test func headSaysTheLengthWithoutTheBody() async throws {
    try await ServerFixture.with { _, port in
      let socket = try RawSocket(port: port)
      try socket.send("HEAD /hello HTTP/1.1\r\nHost: a\r\n\r\nHEAD /nothing HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
      let response = String(decoding: try socket.readToEnd(), as: UTF8.self)
      #expect(response.hasPrefix("HTTP/1.1 200 OK\r\n"))
      #expect(response.contains("Content-Length: 5\r\n"))
      #expect(!response.contains("hello"))
      #expect(response.contains("HTTP/1.1 404"))
      #expect(response.hasSuffix("\r\n\r\n"))
    }
  }

  @Test func oneConnectionServesManyRequests() async throws {
    try await ServerFixture.with { fixture, port in
      let socket = try RawSocket(port: port)
      for round in 0..<20 {
        let body = String(repeating: "b", count: round * 100)
        try socket.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)")
        #expect(try socket.read(through: "\r\n\r\n").contains("200 OK"))
        #expect(try socket.read(exactly: body.utf8.count) == Array(body.utf8))
      }
      #expect(await fixture.statistics.accepted == 1)
      #expect(await fixture.statistics.requests == 20)
    }
  }

  @Test func version10KeepsTheConnectionWhenAsked() async throws {
    try await ServerFixture.with { _, port in
      let socket = try RawSocket(port: port)
      for _ in 0..<2 {
        try socket.send("GET /hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
        #expect(try socket.read(through: "\r\n\r\n").contains("Connection: keep-alive"))
        #expect(try socket.read(exactly: 5) == Array("hello".utf8))
      }
    }
  }

  @Test func pipelinedRequestsAreAnsweredInOrder() async throws {
    try await ServerFixture.with { fixture, port in
      let socket = try RawSocket(port: port)
      var requests = "GET /held HTTP/1.1\r\nHost: a\r\n\r\n"
      for number in 0..<3000 { requests += "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\n\(100_000 + number)" }
      requests += "GET /held HTTP/1.1\r\nHost: a\r\n\r\nGET /hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
      try socket.send(requests)
      #expect(await fixture.wait { $0.heldCount == 1 })
      #expect(await fixture.statistics.requests == 1)
      await fixture.release("first")
      #expect(try socket.read(through: "\r\n\r\n").contains("200 OK"))
      #expect(try socket.read(exactly: 5) == Array("first".utf8))
      for number in 0..<3000 {
        _ = try socket.read(through: "\r\n\r\n")
        #expect(try socket.read(exactly: 6) == Array("\(100_000 + number)".utf8))
      }
      #expect(await fixture.wait { $0.heldCount == 1 })
      await fixture.release("last")
      let rest = String(decoding: try socket.readToEnd(), as: UTF8.self)
      #expect(rest.contains("last") && rest.hasSuffix("hello"))
    }
  }

  @Test func expectedContinueIsSaidBeforeTheBody() async throws {
    try await ServerFixture.with { _, port in
      let socket = try RawSocket(port: port)
      try socket.send("POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 4\r\nConnection: close\r\n\r\n")
      #expect(try socket.read(through: "\r\n\r\n") == "HTTP/1.1 100 Continue\r\n\r\n")
      try socket.send("body")
      #expect(String(decoding: try socket.readToEnd(), as: UTF8.self).hasSuffix("\r\n\r\nbody"))
    }
  }

  @Test func largeResponseThenCloseDeliversAll() async throws {
    try await ServerFixture.with { _, port in
      let socket = try RawSocket(port: port, receiveBufferBytes: 8192)
      try socket.send("GET /large?bytes=5000000 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
      #expect(try socket.read(through: "\r\n\r\n").contains("Content-Length: 5000000"))
      let body = try socket.readToEnd()
      #expect(body.count == 5_000_000)
      #expect(body.indices.allSatisfy { body[$0] == UInt8(truncatingIfNeeded: $0) })
    }
  }

  @Test func slowHeadAndSlowBodyTimeOut() async throws {
    var configuration = ServerFixture.quick()
    // Long enough for a test that is not given a core at once: without a first byte in time there is no answer.
    configuration.headMilliseconds = 3000
    configuration.bodyMilliseconds = 3000
    try await ServerFixture.with(configuration) { fixture, port in
      for start in ["GET /hello HTT", "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbo"] {
        var answer = ""
        // Without a first byte in time, on a machine that stands still, there is none.
        for _ in 0..<5 where answer.isEmpty {
          let socket = try RawSocket(port: port)
          try socket.send(start)
          answer = String(decoding: try socket.readToEnd(), as: UTF8.self)
        }
        #expect(status(answer) == 408)
      }
      #expect(await fixture.statistics.timedOut == 2)
      let silent = try RawSocket(port: port)
      #expect(try silent.readToEnd().isEmpty)
    }
  }

  @Test func idleConnectionIsClosed() async throws {
    var configuration = ServerFixture.quick()
    configuration.idleMilliseconds = 50
    try await ServerFixture.with(configuration) { _, port in
      let socket = try RawSocket(port: port)
      try socket.send("GET /hello HTTP/1.1\r\nHost: a\r\n\r\n")
      #expect(String(decoding: try socket.readToEnd(), as: UTF8.self).hasSuffix("hello"))
    }
  }

  @Test func clientThatReadsNothingIsCutAndDoesNotGrowTheQueue() async throws {
    var configuration = ServerFixture.quick()
    configuration.writeMilliseconds = 100
    try await ServerFixture.with(configuration) { fixture, port in
      let socket = try RawSocket(port: port, receiveBufferBytes: 4096)
      try socket.send(String(repeating: "GET /large?bytes=9000000 HTTP/1.1\r\nHost: a\r\n\r\n", count: 10))
      #expect(await fixture.wait { $0.statistics.accepted == 1 && $0.statistics.open == 0 })
      #expect(await fixture.statistics.requests == 1)
    }
  }

  @Test func tooManyConnectionsAreToldToComeLater() async throws {
    var configuration = ServerFixture.quick()
    configuration.maximumConnections = 2
    try await ServerFixture.with(configuration) { fixture, port in
      let first = try RawSocket(port: port)
      let second = try RawSocket(port: port)
      try second.send("GET /held HTTP/1.1\r\nHost: a\r\n\r\n")
      #expect(await fixture.wait { $0.heldCount == 1 })
      let third = try RawSocket(port: port)
      let refusal = String(decoding: try third.readToEnd(), as: UTF8.self)
      #expect(status(refusal) == 503)
      #expect((5...10).contains(retryAfter(refusal)))
      third.close()
      first.close()
      #expect(await fixture.wait { $0.statistics.open == 1 })
      let fourth = try RawSocket(port: port)
      try fourth.send("GET /hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
      #expect(status(String(decoding: try fourth.readToEnd(), as: UTF8.self)) == 200)
      #expect(await fixture.statistics.overLimit == 1)
    }
  }

  @Test func anAddressHasNoMoreConnectionsThanItsShare() async throws {
    var configuration = ServerFixture.quick()
    configuration.maximumConnectionsPerAddress = 2
    try await ServerFixture.with(configuration) { fixture, port in
      let first = try RawSocket(port: port)
      let second = try RawSocket(port: port)
      // A WebSocket goes on counting, after its connection has changed hands.
      try second.send(upgradeRequest)
      #expect(try second.read(through: "\r\n\r\n").hasPrefix("HTTP/1.1 101"))
      for number in 1...3 {
        let third = try RawSocket(port: port)
        let refusal = String(decoding: try third.readToEnd(), as: UTF8.self)
        #expect(status(refusal) == 429)
        #expect((5...10).contains(retryAfter(refusal)))
        third.close()
        #expect(await fixture.wait { $0.statistics.open == 2 && $0.statistics.overAddressLimit == number })
      }
      let other = try RawSocket(port: port, from: "127.0.0.2")
      try other.send("GET /hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
      #expect(status(String(decoding: try other.readToEnd(), as: UTF8.self)) == 200)
      for socket in [first, second] {
        let open = await fixture.statistics.open
        socket.close()
        #expect(await fixture.wait { $0.statistics.open < open })
        let again = try RawSocket(port: port)
        try again.send("GET /hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        #expect(status(String(decoding: try again.readToEnd(), as: UTF8.self)) == 200)
      }
      #expect(await fixture.statistics.overAddressLimit == 3)
      #expect(await fixture.statistics.overLimit == 0)
    }
  }

  @Test func `a connection beyond the descriptors for clients is told to come later`() async throws {
    var configuration = ServerFixture.quick()
    // Standard input, output and error are open.
    configuration.maximumDescriptor = 3
    try await ServerFixture.with(configuration) { fixture, port in
      let refusal = String(decoding: try RawSocket(port: port).readToEnd(), as: UTF8.self)
      #expect(status(refusal) == 503)
      #expect((5...10).contains(retryAfter(refusal)))
      #expect(await fixture.statistics.overDescriptors == 1)
    }
  }

  @Test func `silent connections make room for one with a request`() async throws {
    var configuration = ServerFixture.quick()
    configuration.maximumConnections = 4
    configuration.replacesSilent = true
    try await ServerFixture.with(configuration) { fixture, port in
      let held = try (0..<3).map { _ in try RawSocket(port: port) }
      for socket in held { try socket.send("GET /held HTTP/1.1\r\nHost: a\r\n\r\n") }
      #expect(await fixture.wait { $0.heldCount == 3 })
      let silent = try RawSocket(port: port)
      #expect(await fixture.wait { $0.statistics.open == 4 })
      let fourth = try RawSocket(port: port)
      try fourth.send("GET /held HTTP/1.1\r\nHost: a\r\n\r\n")
      #expect(await fixture.wait { $0.heldCount == 4 })
      #expect(try silent.readToEnd().isEmpty)
      #expect(status(String(decoding: try RawSocket(port: port).readToEnd(), as: UTF8.self)) == 503)
      await fixture.release("here")
      for socket in held + [fourth] { #expect(try socket.read(through: "here").hasPrefix("HTTP/1.1 200 ")) }
    }
  }

  @Test func anIdleConnectionMakesRoomBeforeAYoungerUpload() async throws {
    var configuration = ServerFixture.quick()
    configuration.maximumConnections = 2
    configuration.replacesSilent = true
    configuration.idleMilliseconds = 2 * hangMilliseconds
    try await ServerFixture.with(configuration) { fixture, port in
      let idle = try RawSocket(port: port)
      try idle.send("GET /hello HTTP/1.1\r\nHost: a\r\n\r\n")
      #expect(try idle.read(through: "hello").hasPrefix("HTTP/1.1 200 "))
      // The clock of the loop is in milliseconds.
      for _ in 0..<10 { await pause() }
      let upload = try RawSocket(port: port)
      try upload.send("GET /hello HTTP/1.1\r\nHost: a\r\n\r\nPOST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbo")
      #expect(try upload.read(through: "hello").hasPrefix("HTTP/1.1 200 "))
      let third = try RawSocket(port: port)
      try third.send("GET /hello HTTP/1.1\r\nHost: a\r\n\r\n")
      #expect(try third.read(through: "hello").hasPrefix("HTTP/1.1 200 "))
      try upload.send("dy")
      #expect(try upload.read(through: "body").hasPrefix("HTTP/1.1 200 "))
      #expect(try idle.readToEnd().isEmpty)
    }
  }

  @Test func aConnectionWhoseRequestIsNotReadYetKeepsItsPlace() async throws {
    var configuration = ServerFixture.quick()
    configuration.maximumConnections = 2
    configuration.replacesSilent = true
    configuration.idleMilliseconds = 2 * hangMilliseconds
    try await ServerFixture.with(configuration) { fixture, port in
      await fixture.pause(true)
      let waiting = try RawSocket(port: port)
      try waiting.send("GET /hello HTTP/1.1\r\nHost: a\r\n\r\n")
      #expect(await fixture.wait { $0.statistics.open == 1 })
      // The clock of the loop is in milliseconds.
      for _ in 0..<10 { await pause() }
      let silent = try RawSocket(port: port)
      #expect(await fixture.wait { $0.statistics.open == 2 })
      let third = try RawSocket(port: port)
      try third.send("GET /hello HTTP/1.1\r\nHost: a\r\n\r\n")
      #expect(try silent.readToEnd().isEmpty)
      await fixture.pause(false)
      for socket in [waiting, third] { #expect(try socket.read(through: "hello").hasPrefix("HTTP/1.1 200 ")) }
    }
  }

  @Test func refusingManyAtOnceTakesNoMoreThanABoundOfThem() async throws {
    var configuration = ServerFixture.quick()
    configuration.maximumConnections = 1
    try await ServerFixture.with(configuration) { fixture, port in
      let first = try RawSocket(port: port)
      #expect(await fixture.wait { $0.statistics.open == 1 })
      // They read nothing and do not go: what they are told is theirs to fetch, for a while.
      let others = try (0..<200).map { _ in try RawSocket(port: port) }
      #expect(await fixture.wait { $0.statistics.overLimit == 200 })
      #expect(await fixture.statistics.open <= 65)
      for socket in others + [first] { socket.close() }
      #expect(await fixture.wait { $0.statistics.open == 0 })
    }
  }

  @Test func responderKnowsThatItsClientHasGone() async throws {
    try await ServerFixture.with { fixture, port in
      let socket = try RawSocket(port: port)
      try socket.send("GET /held HTTP/1.1\r\nHost: a\r\n\r\n")
      #expect(await fixture.wait { $0.heldCount == 1 && $0.heldAreOpen })
      socket.close()
      #expect(await fixture.wait { !$0.heldAreOpen })
      await fixture.release("to nobody")
    }
  }

  @Test func aClientThatHasClosedItsHalfGetsItsAnswerWhereNothingIsReadMeanwhile() async throws {
    var configuration = ServerFixture.quick()
    configuration.readsWhileHandling = false
    try await ServerFixture.with(configuration) { fixture, port in
      let socket = try RawSocket(port: port)
      try socket.send("GET /hello HTTP/1.1\r\nHost: a\r\n\r\nGET /held HTTP/1.1\r\nHost: a\r\n\r\n")
      socket.finishSending()
      #expect(await fixture.wait { $0.heldCount == 1 })
      #expect(await fixture.heldAreOpen)
      await fixture.release("here")
      #expect(String(decoding: try socket.readToEnd(), as: UTF8.self).hasSuffix("here"))
      #expect(await fixture.wait { $0.statistics.open == 0 })
    }
  }

  @Test func closingFinishesWhatIsInFlight() async throws {
    try await ServerFixture.with { fixture, port in
      let idle = try RawSocket(port: port)
      let busy = try RawSocket(port: port)
      try busy.send("GET /held HTTP/1.1\r\nHost: a\r\n\r\n")
      #expect(await fixture.wait { $0.heldCount == 1 && $0.statistics.open == 2 })
      async let closed: Void = fixture.closeServer(withinMilliseconds: hangMilliseconds)
      #expect(try idle.readToEnd().isEmpty)
      idle.close()
      // The port may have another listener by now, so that it is not the refusal that counts.
      if let late = try? RawSocket(port: port) {
        try? late.send("GET /held HTTP/1.1\r\nHost: a\r\n\r\n")
        // Some turns in which the server would see it.
        for _ in 0..<20 { await pause() }
        #expect(await fixture.heldCount == 1)
        late.close()
      }
      await fixture.release("finished")
      let response = String(decoding: try busy.readToEnd(), as: UTF8.self)
      #expect(response.contains("Connection: close") && response.hasSuffix("finished"))
      busy.close()
      await closed
      #expect(await fixture.statistics.open == 0)
    }
  }

  @Test func closingCutsWhatIsNotFinishedInTime() async throws {
    try await ServerFixture.with { fixture, port in
      let busy = try RawSocket(port: port)
      try busy.send("GET /held HTTP/1.1\r\nHost: a\r\n\r\n")
      #expect(await fixture.wait { $0.heldCount == 1 })
      await fixture.closeServer(withinMilliseconds: 50)
      #expect(await fixture.statistics.open == 0)
    }
  }

  @Test func aServerTakesAnotherPortThanATakenOneOnlyIfItMay() async throws {
    let loop = EventLoop(name: "ports")
    try await loop.run {
      var configuration = HTTPServerConfiguration()
      func server(at address: SocketAddress) throws -> HTTPServer {
        try HTTPServer(on: loop, at: address, configuration: configuration, routes: HTTPRoutes())
      }
      let first = try server(at: SocketAddress(host: "127.0.0.1", port: 0))
      #expect { try server(at: first.localAddress) } throws: { ($0 as? EventLoopError)?.code == .addressInUse }
      configuration.takesAnotherPort = true
      let other = try server(at: first.localAddress)
      #expect(other.localAddress.host == "127.0.0.1" && other.localAddress.port != first.localAddress.port)
      for server in [first, other] { server.stopAccepting() }
    }
    await loop.close()
  }
}
