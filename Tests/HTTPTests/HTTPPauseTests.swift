import HTTP
import TestSupport
import Testing

/// A server that has no room for more requests.
@Suite struct HTTPPauseTests {
  private static let get = "GET /hello HTTP/1.1\r\nHost: a\r\n\r\n"

  /// The first bytes of a body, which do not count.
  private static let uncounted = 16_384

  private static func post(_ count: Int) -> String { "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: \(count)\r\n\r\n" }

  @Test func aPausedServerReadsNothingAndThenAnswersAll() async throws {
    try await ServerFixture.with { fixture, port in
      let (idle, halfway) = (try RawSocket(port: port), try RawSocket(port: port))
      try idle.send(Self.get)
      #expect(try idle.read(through: "hello").hasPrefix("HTTP/1.1 200 "))
      try halfway.send(Self.post(4) + "bo")
      #expect(await fixture.wait { $0.statistics.accepted == 2 })
      await fixture.pause(true)
      let new = try RawSocket(port: port)
      for socket in [idle, new] { try socket.send(Self.get + Self.get) }
      try halfway.send("dy")
      #expect(await fixture.wait { $0.statistics.accepted == 3 })
      for _ in 0..<10 { await pause() }
      #expect(await fixture.statistics.requests == 1)
      await fixture.pause(false)
      for socket in [idle, new] { for _ in 0..<2 { #expect(try socket.read(through: "hello").hasPrefix("HTTP/1.1 200 ")) } }
      #expect(try halfway.read(through: "body").hasPrefix("HTTP/1.1 200 "))
    }
  }

  @Test func theBodiesThatArriveAtOnceAreBounded() async throws {
    var configuration = ServerFixture.quick()
    (configuration.maximumBodyBytes, configuration.maximumBufferedBytes) = (Self.uncounted + 1_000, 1_500)
    let (long, shorter) = (Self.uncounted + 900, Self.uncounted + 500)
    configuration.refusal = { HTTPResponse($0, text: "{\"rule\":\"\($1)\"}") }
    try await ServerFixture.with(configuration) { fixture, port in
      let first = try RawSocket(port: port)
      for _ in 0..<3 {
        try first.send(Self.post(long) + String(repeating: "x", count: long - 1))
        #expect(await fixture.wait { $0.statistics.open == 1 })
        let second = try RawSocket(port: port)
        // The first one's bytes have surely been read when those of the second are too many.
        await eventually("the second is refused") {
          let other = try RawSocket(port: port)
          try other.send(Self.post(long) + String(repeating: "x", count: long))
          return try other.read(through: "\r\n").hasPrefix("HTTP/1.1 503 ")
        }
        try second.send(Self.post(shorter) + String(repeating: "x", count: shorter))
        #expect(try second.read(through: "\r\n").hasPrefix("HTTP/1.1 200 "))
        second.close()
        try first.send("x")
        #expect(try first.read(through: String(repeating: "x", count: long)).hasPrefix("HTTP/1.1 200 "))
        #expect(await fixture.wait { $0.statistics.open == 1 })
      }
      try first.send(Self.post(Self.uncounted + 1_001))
      #expect(String(decoding: try first.readToEnd(), as: UTF8.self).hasSuffix(#"{"rule":"The body has more than 17384 bytes."}"#))
    }
  }

  @Test func longBodiesKeepNoShortOneOut() async throws {
    var configuration = ServerFixture.quick()
    configuration.maximumBufferedBytes = 0
    try await ServerFixture.with(configuration) { _, port in
      for (count, status) in [(Self.uncounted, 200), (Self.uncounted + 1, 503), (Self.uncounted, 200)] {
        let socket = try RawSocket(port: port)
        try socket.send(Self.post(count) + String(repeating: "x", count: count))
        #expect(try socket.read(through: "\r\n").hasPrefix("HTTP/1.1 \(status) "))
      }
    }
  }
}
