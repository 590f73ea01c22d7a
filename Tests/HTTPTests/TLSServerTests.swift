import Cryptography
import EventLoop
import TestSupport
import Testing

@testable import HTTP

/// A client that connects with TLS.
private actor TLSClientLane: LoopActor {
  nonisolated let loop = EventLoop(name: "tls-client")
  private var client: WebSocketClient?
  private let log = WebSocketLog()

  /// Runs `body` with one, and ends it.
  @concurrent static func with(_ authorities: [UInt8]?, _ body: @concurrent @Sendable (TLSClientLane) async throws -> Void) async throws {
    let lane = TLSClientLane()
    await lane.open(authorities)
    do { try await body(lane) } catch {
      await lane.loop.close()
      throw error
    }
    await lane.loop.close()
  }

  private func open(_ authorities: [UInt8]?) {
    let client = WebSocketClient(on: loop, configuration: ServerFixture.carillon(), connectMilliseconds: hangMilliseconds)
    client.authorities = authorities
    self.client = client
  }

  /// The error of an attempt; nil when it succeeded.
  func connect(_ url: String) async -> String? {
    do throws(WebSocketClientError) {
      guard let client else { return "no client" }
      _ = try await client.connect(to: url, handler: EchoHandler(log))
      return nil
    } catch { return error.description }
  }

  func sendAll(_ text: String) { for connection in log.connections { connection.send(.text(text)) } }
  var opened: Int { log.opened }
  var open: Int { log.connections.count(where: \.isOpen) }
  func abort() { for connection in log.connections { connection.abort() } }
}

@Suite struct TLSServerTests {
  private func configuration(_ pair: TestCertificates.Pair? = nil, handshakesPerSecond: Int = 100_000) async throws
    -> HTTPServerConfiguration
  {
    var configuration = ServerFixture.quick()
    configuration.tls = try await TLSTunnel.server(pair)
    configuration.tls?.handshakesPerSecond = handshakesPerSecond
    return configuration
  }

  @Test func aClientWithoutTLSIsToldSo() async throws {
    try await ServerFixture.with(try await configuration()) { fixture, port in
      let socket = try RawSocket(port: port)
      try socket.send("GET /hello HTTP/1.1\r\nHost: a\r\n\r\n")
      let answer = String(decoding: try socket.readToEnd(), as: UTF8.self)
      #expect(answer.hasPrefix("HTTP/1.1 400 ") && answer.hasSuffix("\r\n\r\nThis port speaks TLS: the URL is https:// or wss://\n"))
      socket.close()
      #expect(await fixture.wait { $0.tlsStatistics.failed == [.plainHTTP: 1] && $0.statistics.open == 0 })
    }
  }

  @Test(arguments: ["/large?bytes=3000000", "/streamed/3000000", "/hello"]) func libcurlFetches(path: String) async throws {
    let authorities = try await TestCertificates.shared.value.authority
    try await ServerFixture.with(try await configuration()) { _, port in
      try await TestFolder.with(["ca.pem": authorities]) { folder in
        var client = try HTTPClientLane.local("localhost:\(port)")
        client.schemes = [.https]
        client.certificateFile = "\(folder.path)/ca.pem"
        try await HTTPClientLane.with(client) { lane in
          var request = patient(.get, "https://localhost:\(port)\(path)")
          request.maximumBodyBytes = 4 << 20
          let result = await lane.send(request)
          #expect(result.status == 200, "\(result)")
          if path != "/hello" { #expect((try? result.get())?.body.count == 3_000_000) }
        }
      }
    }
  }

  @Test func aResponseThatClosesEndsWithTheLastWordOfTLS() async throws {
    let authorities = try await TLSTunnel.client()
    try await ServerFixture.with(try await configuration()) { _, port in
      let context = try TLSContext(authorities: authorities, protocols: ["http/1.1"])
      let session = context.connect(host: "localhost", isNumeric: false, port: port)
      let socket = try RawSocket(port: port)
      var (answer, isAsked): ([UInt8], Bool) = ([], false)
      func sendOutput() throws { if let bytes = session.takeOutput({ Array($0) }) { try socket.send(bytes) } }
      try sendOutput()
      while session.end == nil, case let bytes = try socket.read(), !bytes.isEmpty {
        bytes.withUnsafeBytes { session.receive($0) { answer += $0 } }
        try sendOutput()
        guard session.isReady, !isAsked else { continue }
        isAsked = true
        let request = Array("GET /large?bytes=200000 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".utf8)
        #expect(request.withUnsafeBytes { session.send($0) })
        try sendOutput()
      }
      #expect(session.end == .peerClosed, "otherwise a response that was cut would look complete")
      #expect(answer.count > 200_000)
    }
  }

  @Test func garbageEndsTheConnection() async throws {
    try await ServerFixture.with(try await configuration()) { fixture, port in
      let socket = try RawSocket(port: port)
      try socket.send([UInt8](repeating: 0xA5, count: 40_000))
      _ = try? socket.readToEnd()
      socket.close()
      #expect(await fixture.wait { $0.tlsStatistics.failed == [.violation: 1] && $0.statistics.open == 0 })
    }
  }

  @Test(arguments: [[], [0x16, 3, 1, 1]] as [[UInt8]]) func aHandshakeThatNeverEndsHasADeadline(start: [UInt8]) async throws {
    var configuration = try await configuration()
    configuration.headMilliseconds = 100
    try await ServerFixture.with(configuration) { fixture, port in
      let socket = try RawSocket(port: port)
      try socket.send(start)
      #expect(try socket.readToEnd().isEmpty)
      socket.close()
      #expect(await fixture.wait { $0.statistics.accepted == 1 && $0.statistics.open == 0 })
    }
  }

  @Test func handshakesBeyondTheCeilingWaitAndSucceed() async throws {
    try await ServerFixture.with(try await configuration(handshakesPerSecond: 40)) { fixture, port in
      try await TLSClientLane.with(try await TLSTunnel.client()) { lane in
        await withTaskGroup { group in
          for _ in 0..<20 { group.addTask { #expect(await lane.connect("wss://127.0.0.1:\(port)/ws") == nil) } }
        }
        #expect(await lane.open == 20)
        let tls = await fixture.tlsStatistics
        #expect(tls.full + tls.resumed == 20)
        #expect(tls.waits > 0)
        await lane.abort()
      }
    }
  }

  @Test func aConnectionWithNoneBeforeItHasNotWaited() async throws {
    try await ServerFixture.with(try await configuration(handshakesPerSecond: 1)) { fixture, port in
      try await TLSClientLane.with(try await TLSTunnel.client()) { lane in
        #expect(await lane.connect("wss://127.0.0.1:\(port)/ws") == nil)
        #expect(await fixture.tlsStatistics.waits == 0)
        await lane.abort()
      }
    }
  }

  @Test func aFurtherConnectionResumesTheSession() async throws {
    try await ServerFixture.with(try await configuration()) { fixture, port in
      try await TLSClientLane.with(try await TLSTunnel.client()) { lane in
        #expect(await lane.connect("wss://localhost:\(port)/ws") == nil)
        #expect(await lane.connect("wss://localhost:\(port)/ws") == nil)
        let tls = await fixture.tlsStatistics
        #expect((tls.full, tls.resumed) == (1, 1))
        await lane.abort()
      }
    }
  }

  @Test func aServerThatMustNotBeTrustedIsRefusedWithTheReason() async throws {
    let certificates = try await TestCertificates.shared.value
    for (pair, authorities, reason) in [
      (certificates.expired, certificates.authority as String?, "has expired"),
      (certificates.other, certificates.authority, "another name"),
      (certificates.good, nil, "no known authority"), (certificates.good, "nothing", "no certificate in PEM"),
    ] {
      try await ServerFixture.with(try await configuration(pair)) { fixture, port in
        try await TLSClientLane.with(authorities.map { Array($0.utf8) }) { lane in
          let error = await lane.connect("wss://localhost:\(port)/ws")
          #expect(error?.contains(reason) == true, "\(error ?? "it connected")")
          #expect(await lane.opened == 0)
        }
      }
    }
  }

  @Test func aClientOfTLSIsToldByAServerWithoutIt() async throws {
    try await ServerFixture.with { _, port in
      try await TLSClientLane.with(nil) { lane in
        let error = await lane.connect("wss://localhost:\(port)/ws")
        #expect(error?.contains("breaks the protocol") == true, "\(error ?? "it connected")")
      }
    }
  }

  @Test func anotherCertificateEndsNoConnection() async throws {
    let certificates = try await TestCertificates.shared.value
    let configuration = try await configuration()
    try await ServerFixture.with(configuration) { fixture, port in
      try await TLSClientLane.with(try await TLSTunnel.client()) { lane in
        #expect(await lane.connect("wss://localhost:\(port)/ws") == nil)
        let next = try TLSIdentity(certificates: Array(certificates.other.certificate.utf8), key: Array(certificates.other.key.utf8))
        configuration.tls?.identity.replace(with: next)
        // By its number, so that no session is resumed, which would ask for no certificate.
        let error = await lane.connect("wss://127.0.0.1:\(port)/ws")
        #expect(error?.contains("another name") == true, "\(error ?? "it connected")")
        #expect(await lane.open == 1)
        await lane.sendAll("still here")
        #expect(await fixture.wait { $0.statistics.open == 1 })
        await lane.abort()
      }
    }
  }
}
