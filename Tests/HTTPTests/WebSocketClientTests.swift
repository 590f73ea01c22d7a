import EventLoop
import TestSupport
import Testing

@testable import HTTP

/// What a client's handler was told.
private final class ClientHandler: WebSocketHandler {
  var connection: WebSocketConnection?
  var texts: [String] = []
  var binaries: [[UInt8]] = []
  var ends: [WebSocketEnd] = []

  func webSocketOpened(_ connection: WebSocketConnection) { self.connection = connection }
  func webSocketReceived(text: UnsafeRawBufferPointer) { texts.append(String(decoding: text, as: UTF8.self)) }
  func webSocketReceived(binary: UnsafeRawBufferPointer) { binaries.append(Array(binary)) }
  func webSocketEnded(_ end: WebSocketEnd) {
    ends.append(end)
    connection = nil
  }
}

/// A server that answers the first bytes of every connection with what it is told.
private final class Impostor: StreamHandler {
  private let stream: Stream
  private let finishes: Bool
  private let answer: (String) -> [UInt8]?
  private var request = ""

  init(_ stream: Stream, finishes: Bool, _ answer: @escaping (String) -> [UInt8]?) {
    self.stream = stream
    self.finishes = finishes
    self.answer = answer
  }

  func streamReceived(_ bytes: UnsafeRawBufferPointer) {
    request += String(decoding: bytes, as: UTF8.self)
    guard request.hasSuffix("\r\n\r\n"), let bytes = answer(request) else { return }
    stream.write(bytes.withUnsafeBytes { SharedBytes.make($0) })
    if finishes { stream.finish(withinMilliseconds: 1000) }
  }

  func streamDrained() {}
  func streamEnded(_ end: StreamEnd) {}
}

private actor ClientLane: LoopActor {
  nonisolated let loop = EventLoop(name: "client-test")
  private let handler = ClientHandler()
  private var listener: Listener?

  /// The error of an attempt; nil when it succeeded.
  func connect(
    _ url: String, _ configuration: WebSocketConfiguration = ServerFixture.carillon(), headers: [(name: String, value: String)] = [],
    milliseconds: Int = 60_000
  ) async -> WebSocketClientError? {
    do throws(WebSocketClientError) {
      let client = WebSocketClient(on: loop, configuration: configuration, connectMilliseconds: milliseconds)
      let connection = try await client.connect(to: url, headers: headers, handler: handler)
      if connection !== handler.connection, handler.ends.isEmpty { Issue.record("the handler knows another connection") }
      return nil
    } catch { return error }
  }

  /// Answers every request with what `answer` makes of its key; `ACCEPT` in it becomes the right one. Nil is silence.
  ///
  /// - Parameter frames: sent in the same write.
  func impersonate(_ answer: String?, then frames: [UInt8] = [], finishes: Bool = true) throws -> String {
    let listener = try Listener(on: loop, at: SocketAddress(host: "127.0.0.1", port: 0)) { stream in
      stream.handler = Impostor(stream, finishes: finishes) { request in
        let key = request.split(separator: "\r\n").first { $0.hasPrefix("Sec-WebSocket-Key: ") }?.dropFirst(19) ?? ""
        return answer.map { Array($0.replacing("ACCEPT", with: WebSocketKey.accept(String(key))).utf8) + frames }
      }
      stream.startReading()
    }
    self.listener = listener
    return "ws://\(listener.localAddress)/ws"
  }

  func send(_ frames: [WebSocketFrame]) { for frame in frames { handler.connection?.send(frame) } }
  func close(_ code: WebSocketCloseCode, _ reason: String) { handler.connection?.close(code, reason) }
  func abort() { handler.connection?.abort() }
  var texts: [String] { handler.texts }
  var binaries: [[UInt8]] { handler.binaries }
  var ends: [WebSocketEnd] { handler.ends }

  /// Waits until a condition on the loop holds.
  func wait(_ location: SourceLocation = #_sourceLocation, until condition: @Sendable (isolated ClientLane) -> Bool) async -> Bool {
    await eventually("the condition holds", location) { condition(self) }
  }

  func closeListener() { listener?.close() }
}

private let upgraded = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
private let accepted = upgraded + "Sec-WebSocket-Accept: ACCEPT\r\nSec-WebSocket-Protocol: carillon.v1\r\n"

@Suite struct WebSocketClientTests {
  /// Runs `body` with a client on a loop of its own.
  @concurrent private func withClient(_ body: @concurrent @Sendable (ClientLane) async throws -> Void) async throws {
    let client = ClientLane()
    do { try await body(client) } catch {
      await client.loop.close()
      throw error
    }
    await client.loop.close()
  }

  @Test func messagesOfEverySizeGoBothWays() async throws {
    try await ServerFixture.with { fixture, port in
      try await withClient { client in
        #expect(await client.connect("ws://127.0.0.1:\(port)/ws") == nil)
        let sizes = [0, 1, 125, 126, 4096, 65_535, 65_536, 70_000]
        await client.send(sizes.map { size in .text(String(repeating: "é", count: size / 2)) })
        await client.send(
          sizes.map { size in
            .make(WebSocketFrame.Opcode.binary, size) { for index in $0.indices { $0[index] = UInt8(truncatingIfNeeded: index) } }
          })
        #expect(await client.wait { $0.binaries.count == sizes.count })
        #expect(await client.texts.map(\.utf8.count) == sizes.map { $0 / 2 * 2 })
        #expect(await client.binaries.allSatisfy { bytes in bytes.indices.allSatisfy { bytes[$0] == UInt8(truncatingIfNeeded: $0) } })
        await client.close(.normal, "done")
        #expect(await client.wait { $0.ends == [WebSocketEnd(.closed, .normal, "done")] })
        #expect(await fixture.wait { $0.ends == [WebSocketEnd(.peerClosed, .normal, "done")] })
        // Connections are closed by both sides, not only by a deadline.
        #expect(await fixture.wait { $0.statistics.open == 0 })
      }
    }
  }

  @Test func serversCloseReachesTheClient() async throws {
    try await ServerFixture.with { fixture, port in
      try await withClient { client in
        #expect(await client.connect("ws://127.0.0.1:\(port)/ws?send=100") == nil)
        #expect(await client.wait { $0.ends == [WebSocketEnd(.peerClosed, .goingAway, "that was all")] })
        #expect(await client.texts.count == 100)
        #expect(await fixture.wait { $0.ends.map(\.cause) == [.closed] })
      }
    }
  }

  @Test func refusalCarriesStatusBodyAndDelay() async throws {
    try await ServerFixture.with { _, port in
      try await withClient { client in
        guard case .refused(_, 429, let body, 7)? = await client.connect("ws://127.0.0.1:\(port)/ws?refuse=busy") else {
          Issue.record("not refused with 429")
          return
        }
        #expect(body == "Too many connections of yours.\n")
        guard case .refused(_, 404, _, nil)? = await client.connect("ws://127.0.0.1:\(port)/nothing") else {
          Issue.record("not refused with 404")
          return
        }
        guard case .refused(_, 400, let reason, nil)? = await client.connect("ws://127.0.0.1:\(port)/ws", WebSocketConfiguration()) else {
          Issue.record("not refused with 400")
          return
        }
        #expect(reason.contains("carillon.v1"))
      }
    }
  }

  @Test(arguments: [
    (upgraded + "Sec-WebSocket-Accept: AAAA\r\nSec-WebSocket-Protocol: carillon.v1\r\n\r\n", "Accept"),
    (upgraded + "Sec-WebSocket-Protocol: carillon.v1\r\n\r\n", "Accept"),
    (upgraded + "Sec-WebSocket-Accept: ACCEPT\r\n\r\n", "subprotocol"),
    (upgraded + "Sec-WebSocket-Accept: ACCEPT\r\nSec-WebSocket-Protocol: other\r\n\r\n", "subprotocol"),
    (accepted + "Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n", "extension"),
    ("HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n", "something else"),
    ("SSH-2.0-OpenSSH_9.2\r\n", "malformed"), ("HTTQ/1.1 101 Switching Protocols\r\n\r\n", "must begin with"),
    (accepted.replacing("\r\n", with: "\n") + "\n", "CR LF"), (accepted + "X: 1\r\n 2\r\n\r\n", "folded"),
    ("HTTP/1.1 101 X\r\nY: " + String(repeating: "y", count: 20_000), "headTooLarge"),
  ])
  func wrongAnswersAreNamed(answer: String, reason: String) async throws {
    try await withClient { client in
      let error = await client.connect(try await client.impersonate(answer))
      guard case .invalidResponse(_, let text)? = error else {
        Issue.record("\(String(describing: error))")
        return
      }
      #expect(text.contains(reason), "\(text)")
    }
  }

  @Test func framesBehindTheUpgradeAndInterimResponsesAreTaken() async throws {
    try await withClient { client in
      let url = try await client.impersonate(
        "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + accepted + "\r\n",
        then: clientFrame(1, Array("hel".utf8), isFinal: false, isMasked: false) + clientFrame(0, Array("lo".utf8), isMasked: false)
          + clientFrame(8, [3, 0xE8], isMasked: false))
      #expect(await client.connect(url) == nil)
      #expect(await client.wait { $0.ends == [WebSocketEnd(.peerClosed, .normal)] })
      #expect(await client.texts == ["hello"])
    }
  }

  @Test func responseWithoutALengthEndsWithItsConnection() async throws {
    try await withClient { client in
      let error = await client.connect(try await client.impersonate("HTTP/1.1 502 Bad Gateway\r\n\r\nupstream is gone"))
      guard case .refused(_, 502, "upstream is gone", nil)? = error else {
        Issue.record("\(String(describing: error))")
        return
      }
    }
  }

  @Test func refusalIsKnownBeforeItsBodyEnds() async throws {
    try await withClient { client in
      for count in [10, 5000] {
        let body = String(repeating: "b", count: count)
        let url = try await client.impersonate("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 9999\r\n\r\n" + body, finishes: false)
        guard case .refused(_, 503, let start, nil)? = await client.connect(url, milliseconds: count == 10 ? 15_000 : 60_000) else {
          Issue.record("not refused")
          return
        }
        #expect(start.utf8.count == min(count, 1024))
      }
    }
  }

  @Test func silenceTimesOutAndAbsenceIsRefused() async throws {
    try await withClient { client in
      let url = try await client.impersonate(nil)
      // On a machine that stands still the connection itself may take so long.
      await eventually("it times out") { if case .timedOut? = await client.connect(url, milliseconds: 300) { true } else { false } }
      await client.closeListener()
      // A process that a test starts may keep the listener for the moment between fork and exec.
      await eventually("it is refused") {
        // Such a listener may even accept, and another test's server may have got the port.
        if case .connection(let error)? = await client.connect(url, milliseconds: 1000) { error.code == .connectionRefused } else { false }
      }
      guard case .url? = await client.connect("http://127.0.0.1/") else {
        Issue.record("http was not refused")
        return
      }
    }
  }

  @Test func serversFrameMayNotBeMasked() async throws {
    try await withClient { client in
      let url = try await client.impersonate(accepted + "\r\n", then: clientText("hello"))
      #expect(await client.connect(url) == nil)
      #expect(await client.wait { $0.ends.map(\.cause) == [.protocolViolation] })
    }
  }

  @Test func clientPingsAQuietServer() async throws {
    try await withClient { client in
      var configuration = ServerFixture.carillon()
      configuration.pingMilliseconds = 50
      configuration.pongMilliseconds = 50
      let url = try await client.impersonate(accepted + "\r\n", finishes: false)
      #expect(await client.connect(url, configuration) == nil)
      #expect(await client.wait { $0.ends.map(\.cause) == [.pingTimeout] })
    }
  }
}
