import HTTP
import TestSupport
import Testing

/// Bodies that are read piece by piece as their clients take them.
@Suite struct HTTPStreamingTests {
  /// What sockets and the server may hold for one client that reads slowly.
  private static let boundBytes = 2 << 20
  private static let pieceBytes = 131_072

  private func get(_ target: String, _ method: String = "GET", _ fields: String = "") -> String {
    "\(method) \(target) HTTP/1.1\r\nHost: a\r\n\(fields)\r\n"
  }

  /// Reads a whole response, and nothing behind it.
  private func readResponse(_ socket: RawSocket, isHead: Bool = false) throws -> (head: String, body: [UInt8]) {
    let head = try socket.read(through: "\r\n\r\n")
    let length = head.split(separator: "\r\n").first { $0.hasPrefix("Content-Length: ") }.flatMap { Int($0.dropFirst(16)) }
    return (head, isHead ? [] : try socket.read(exactly: length ?? 0))
  }

  @Test func aBodyOfManyMegabytesWaitsForItsSlowClientAndArrivesWhole() async throws {
    let count = 24 << 20
    try await ServerFixture.with { fixture, port in
      let socket = try RawSocket(port: port, receiveBufferBytes: 65_536)
      try socket.send(get("/streamed/\(count)"))
      #expect(try socket.read(through: "\r\n\r\n").contains("\r\nContent-Length: \(count)\r\n"))
      var body: [UInt8] = []
      var ahead = 0
      while body.count < count {
        let bytes = try socket.read(exactly: min(524_288, count - body.count))
        if bytes.isEmpty { break }
        body += bytes
        ahead = max(ahead, await fixture.sources.bytesRead - body.count)
      }
      #expect(body.count == count && PatternSource.firstDifference(in: body) == nil)
      #expect(ahead < Self.boundBytes)
      #expect(await fixture.wait { $0.sources.closings == [1] })
      let sources = await fixture.sources
      #expect(sources.bytesRead == count && sources.mostPieces <= 2 && sources.wrongReads == 0)
      try socket.send(get("/hello"))
      #expect(try readResponse(socket).body == Array("hello".utf8))
    }
  }

  @Test func aClientThatTakesAllAtOnceLeavesTheLoopToOthers() async throws {
    try await ServerFixture.with { fixture, port in
      let socket = try RawSocket(port: port, receiveBufferBytes: 4 << 20)
      try socket.send(get("/streamed/\(16 << 20)", "GET", "Connection: close\r\n"))
      #expect(PatternSource.firstDifference(in: Array(try socket.readToEnd().suffix(16 << 20))) == nil)
      // The first piece goes out in its request's turn, and the second may at its end; then the others are looked at between two.
      let sources = await fixture.sources
      #expect(sources.readsInSameTurn <= 1)
    }
  }

  @Test func aConnectionIsKeptAfterABodyOfAnyLength() async throws {
    let counts = [1, 1000, Self.pieceBytes - 1, Self.pieceBytes, Self.pieceBytes + 1, 2 * Self.pieceBytes, 1_000_000, 0]
    try await ServerFixture.with { fixture, port in
      let socket = try RawSocket(port: port)
      for count in counts {
        try socket.send(get("/streamed/\(count)"))
        let (head, body) = try readResponse(socket)
        #expect(head.contains("\r\nContent-Length: \(count)\r\n") && !head.contains("Connection"))
        #expect(body.count == count && PatternSource.firstDifference(in: body) == nil)
      }
      #expect(await fixture.wait { $0.sources.closings == counts.map { _ in 1 } })
      #expect(await fixture.sources.wrongReads == 0)
      #expect(await fixture.statistics.accepted == 1)
    }
  }

  @Test func whatIsPipelinedWaitsBehindABody() async throws {
    try await ServerFixture.with { fixture, port in
      let socket = try RawSocket(port: port, receiveBufferBytes: 65_536)
      try socket.send(
        get("/streamed/8000000") + get("/hello") + get("/large?bytes=200000") + get("/streamed/300000") + get("/streamed/5", "HEAD")
          + get("/streamed/100") + get("/hello", "GET", "Connection: close\r\n"))
      #expect(await fixture.wait { $0.sources.bytesRead > 0 })
      let first = try readResponse(socket)
      #expect(first.body.count == 8_000_000 && PatternSource.firstDifference(in: first.body) == nil)
      #expect(try readResponse(socket).body == Array("hello".utf8))
      #expect(try readResponse(socket).body.count == 200_000)
      let second = try readResponse(socket)
      #expect(second.body.count == 300_000 && PatternSource.firstDifference(in: second.body) == nil)
      #expect(try readResponse(socket, isHead: true).head.contains("\r\nContent-Length: 5\r\n"))
      #expect(PatternSource.firstDifference(in: try readResponse(socket).body) == nil)
      #expect(String(decoding: try socket.readToEnd(), as: UTF8.self).hasSuffix("\r\n\r\nhello"))
      #expect(await fixture.sources.closings == [1, 1, 1, 1])
    }
  }

  @Test func noRequestIsLookedAtBeforeTheBodyOfTheLastIsSent() async throws {
    try await ServerFixture.with { fixture, port in
      let socket = try RawSocket(port: port, receiveBufferBytes: 4096)
      try socket.send(String(repeating: get("/streamed/30000000"), count: 3000))
      #expect(await fixture.wait { $0.sources.bytesRead > Self.pieceBytes })
      let sources = await fixture.sources
      #expect(await fixture.statistics.requests == 1)
      #expect(sources.bytesRead < 8 << 20 && sources.mostPieces <= 2)
      socket.close()
      #expect(await fixture.wait { $0.sources.closings == [1] && $0.statistics.open == 0 })
    }
  }

  @Test func aClientThatHasClosedItsHalfGetsTheWholeBody() async throws {
    try await ServerFixture.with { fixture, port in
      let socket = try RawSocket(port: port, receiveBufferBytes: 65_536)
      try socket.send(get("/streamed/5000000"))
      socket.finishSending()
      let all = try socket.readToEnd()
      #expect(PatternSource.firstDifference(in: Array(all.suffix(5_000_000))) == nil)
      #expect(await fixture.wait { $0.statistics.open == 0 })
      #expect(await fixture.sources.closings == [1])
    }
  }

  @Test func headSaysABodysLengthAndReadsNothing() async throws {
    try await ServerFixture.with { fixture, port in
      let socket = try RawSocket(port: port)
      try socket.send(get("/streamed/5000000000", "HEAD") + get("/streamed/10?status=304") + get("/hello", "GET", "Connection: close\r\n"))
      let response = String(decoding: try socket.readToEnd(), as: UTF8.self)
      let parts = response.split(separator: "\r\n\r\n", omittingEmptySubsequences: false)
      try #require(parts.count == 4)
      #expect(parts[0].contains("200 OK\r\n") && parts[0].hasSuffix("\r\nContent-Length: 5000000000"))
      #expect(parts[1].contains("304 Not Modified\r\n") && !parts[1].contains("Content-Length"))
      #expect(parts[3] == "hello")
      let sources = await fixture.sources
      #expect(sources.closings == [1, 1] && sources.bytesRead == 0)
    }
  }

  @Test(arguments: ["error", "empty", "long"], [0, 1, 400_000])
  func aSourceThatFailsClosesTheConnectionAtOnce(fault: String, position: Int) async throws {
    try await ServerFixture.with { fixture, port in
      let socket = try RawSocket(port: port)
      try socket.send(get("/streamed/1000000?fault=\(fault)&at=\(position)") + get("/hello"))
      let all = try socket.readToEnd()
      if let end = all.firstRange(of: Array("\r\n\r\n".utf8)) {
        let body = Array(all[end.upperBound...])
        #expect(String(decoding: all[..<end.upperBound], as: UTF8.self).contains("\r\nContent-Length: 1000000\r\n"))
        #expect(body.count <= position && PatternSource.firstDifference(in: body) == nil)
      }
      #expect(await fixture.wait { $0.statistics.open == 0 })
      let sources = await fixture.sources
      #expect(sources.closings == [1] && sources.bytesRead == position && sources.wrongReads == 0)
      #expect(await fixture.statistics.requests == 1)
    }
  }

  @Test func aClientThatStopsReadingIsCutAfterTheWriteTime() async throws {
    var configuration = ServerFixture.quick()
    configuration.writeMilliseconds = 1000
    try await ServerFixture.with(configuration) { fixture, port in
      let silent = try RawSocket(port: port, receiveBufferBytes: 4096)
      try silent.send(get("/streamed/30000000"))
      let stopping = try RawSocket(port: port, receiveBufferBytes: 4096)
      try stopping.send(get("/streamed/30000000", "GET", "Connection: close\r\n"))
      _ = try stopping.read(exactly: 200_000)
      #expect(await fixture.wait { $0.statistics.accepted == 2 && $0.statistics.open == 0 })
      let sources = await fixture.sources
      #expect(sources.closings == [1, 1] && sources.bytesRead < 16 << 20)
    }
  }

  @Test(.onlyInAll("it is about time: a client that reads for longer than one write may take"))
  func aClientThatGoesOnReadingHasTheWriteTimeForEachPiece() async throws {
    var configuration = ServerFixture.quick()
    configuration.writeMilliseconds = 16_000
    try await ServerFixture.with(configuration) { _, port in
      let socket = try RawSocket(port: port, receiveBufferBytes: 65_536)
      try socket.send(get("/streamed/\(7 << 20)"))
      _ = try socket.read(through: "\r\n\r\n")
      var body: [UInt8] = []
      for _ in 0..<28 {
        body += try socket.read(exactly: 262_144)
        await timePasses(.milliseconds(800))
      }
      #expect(body.count == 7 << 20 && PatternSource.firstDifference(in: body) == nil)
    }
  }

  @Test func aSourceIsClosedWhenItsClientHasGone() async throws {
    try await ServerFixture.with { fixture, port in
      let reading = try RawSocket(port: port, receiveBufferBytes: 4096)
      try reading.send(get("/streamed/30000000"))
      _ = try reading.read(exactly: 300_000)
      reading.close()
      #expect(await fixture.wait { $0.sources.closings == [1] && $0.statistics.open == 0 })

      let waiting = try RawSocket(port: port)
      try waiting.send(get("/held"))
      #expect(await fixture.wait { $0.heldCount == 1 })
      waiting.close()
      #expect(await fixture.wait { !$0.heldAreOpen })
      await fixture.releaseStreamed(30_000_000)
      let read = await fixture.sources.bytesRead
      #expect(await fixture.sources.closings == [1, 1, 1])
      #expect(read < 30_000_000)
    }
  }

  @Test func aSourceThatIsNeverSentIsClosed() async throws {
    try await ServerFixture.with { fixture, port in
      let socket = try RawSocket(port: port)
      try socket.send(get("/streamed/300000?forgotten=1"))
      #expect(try readResponse(socket).head.hasPrefix("HTTP/1.1 500 "))
      #expect(await fixture.sources.closings == [1])

      // The second answer to the same request counts for nothing.
      try socket.send(get("/held"))
      #expect(await fixture.wait { $0.heldCount == 1 })
      await fixture.releaseStreamed(300_000)
      #expect(PatternSource.firstDifference(in: try readResponse(socket).body) == nil)
      #expect(await fixture.wait { $0.sources.closings == [1, 1, 1] })
      #expect(await fixture.sources.bytesRead == 300_000)
    }
  }

  @Test func drainingLetsABodyEndBeforeItsConnectionIsClosed() async throws {
    try await ServerFixture.with { fixture, port in
      let socket = try RawSocket(port: port, receiveBufferBytes: 65_536)
      try socket.send(get("/streamed/8000000") + get("/hello"))
      let idle = try RawSocket(port: port)
      #expect(await fixture.wait { $0.sources.bytesRead > 0 && $0.statistics.open == 2 })
      async let closed: Void = fixture.closeServer(withinMilliseconds: hangMilliseconds)
      // It ends when the draining has begun.
      #expect(try idle.readToEnd().isEmpty)
      idle.close()
      let all = try socket.readToEnd()
      #expect(PatternSource.firstDifference(in: Array(all.suffix(8_000_000))) == nil)
      socket.close()
      await closed
      #expect(await fixture.statistics.open == 0)
      #expect(await fixture.sources.closings == [1])
    }
  }

  @Test func drainingCutsABodyThatIsNotSentInTime() async throws {
    try await ServerFixture.with { fixture, port in
      let socket = try RawSocket(port: port, receiveBufferBytes: 4096)
      try socket.send(get("/streamed/30000000"))
      #expect(await fixture.wait { $0.sources.bytesRead > 0 })
      await fixture.closeServer(withinMilliseconds: 50)
      #expect(await fixture.statistics.open == 0)
      #expect(await fixture.sources.closings == [1])
    }
  }

  @Test func aDownloadIsResumedWhereItBroke() async throws {
    try await ServerFixture.with { fixture, port in
      let socket = try RawSocket(port: port)
      try socket.send(get("/file"))
      let whole = try readResponse(socket)
      #expect(whole.head.hasPrefix("HTTP/1.1 200 OK\r\n") && whole.head.contains("\r\nAccept-Ranges: bytes\r\n"))
      #expect(whole.head.contains("\r\nETag: \"the-file\"\r\n") && whole.body.count == 1_000_000)
      try socket.send(get("/file", "GET", "Range: bytes=700000-\r\nIf-Range: \"the-file\"\r\n"))
      let rest = try readResponse(socket)
      #expect(rest.head.hasPrefix("HTTP/1.1 206 Partial Content\r\n"))
      #expect(rest.head.contains("\r\nContent-Range: bytes 700000-999999/1000000\r\n"))
      #expect(rest.body.count == 300_000 && PatternSource.firstDifference(in: rest.body, from: 700_000) == nil)
      try socket.send(get("/file", "GET", "Range: bytes=1000000-\r\n"))
      let beyond = try readResponse(socket)
      #expect(beyond.head.hasPrefix("HTTP/1.1 416 ") && beyond.head.contains("\r\nContent-Range: bytes */1000000\r\n"))
      #expect(beyond.body.isEmpty)
      try socket.send(get("/file", "HEAD", "Range: bytes=0-9\r\n") + get("/file", "GET", "If-None-Match: W/\"the-file\"\r\n"))
      #expect(try readResponse(socket, isHead: true).head.contains("\r\nContent-Length: 1000000\r\n"))
      #expect(try readResponse(socket).head.hasPrefix("HTTP/1.1 304 "))
      #expect(await fixture.wait { $0.sources.closings == [1, 1, 1] })
    }
  }
}
