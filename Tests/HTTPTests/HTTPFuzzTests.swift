import EventLoop
import TestSupport
import Testing

@testable import HTTP

/// Messages and frames under random input: in the parsers themselves, and through sockets on both sides.
@Suite struct HTTPFuzzTests {
  // MARK: Messages

  private static let requests: [[UInt8]] = [
    "GET /hello?a=1&name=J%C3%B6rg HTTP/1.1\r\nHost: a\r\nX-CASE:  v \r\nConnection: close\r\n\r\n",
    "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbodyGET /next HTTP/1.1\r\nHost: a\r\n\r\n",
    "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nT: v\r\n\r\n",
    "GET http://a/hello HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n", "HEAD /hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", RawSocket.upgrade(), RawSocket.upgrade(more: "Origin: http://x\r\n"),
  ].map { Array($0.utf8) }
  private static let responses: [[UInt8]] = [
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ACCEPT\r\nSec-WebSocket-Protocol: carillon.v1\r\n\r\n",
    "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 7\r\nContent-Length: 5\r\n\r\nhello",
    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    "HTTP/1.0 200 OK\r\n\r\nuntil the end",
  ].map { Array($0.utf8) }
  private static let tokens = [
    "\r\n", "\n", "\r\n\r\n", ": ", ":", " ", "\t", "HTTP/1.1", "HTTP/1.0", "HTTP/2.0", "GET ", "POST ", "CONNECT ", "Host: a\r\n",
    "Content-Length: ",
    "Transfer-Encoding: chunked\r\n", "Transfer-Encoding: gzip, chunked\r\n", "Connection: Upgrade\r\n", "Upgrade: websocket\r\n",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n", "Sec-WebSocket-Version: 13\r\n", "0\r\n\r\n", "ffffffffffffffff\r\n",
    "Expect: 100-continue\r\n",
    "Retry-After: ", "Sec-WebSocket-Accept: ACCEPT\r\n", "%", "?", "#", "http://",
  ]

  /// What a parser says of bytes that come in pieces: one line for each message, and how it ended.
  private static func read(_ pieces: [UnsafeRawBufferPointer], _ parser: MessageParser, requests: Bool) -> [String] {
    var lines: [String] = []
    parser.reset()
    for piece in pieces {
      var rest = piece
      while !rest.isEmpty {
        let (consumed, outcome) = parser.parse(rest)
        if consumed < 0 || consumed > rest.count { return lines + ["it took \(consumed) of \(rest.count) bytes"] }
        rest = UnsafeRawBufferPointer(rebasing: rest[consumed...])
        switch outcome {
        case .incomplete:
          if !rest.isEmpty { return lines + ["incomplete, though bytes are left"] }
        // Which of several faults is named may depend on what has come.
        case .failed(.malformed): return lines + ["malformed"]
        case .failed(let failure): return lines + ["failed: \(failure)"]
        case .complete:
          let headers = ["Host", "Content-Length", "Connection", "Upgrade", "Retry-After"].map { parser.headers.values(of: $0) }
          lines.append(
            requests
              ? "\(parser.method.rawValue) \(parser.target) \(headers) \(parser.body) \(parser.keepsAlive) \(parser.asksForWebSocket)"
              : "\(parser.status) \(headers) \(parser.body)")
          if requests { _ = RequestTarget(parser.target).map { target in request(target, parser).queryParameter("name") } }
          parser.reset()
        }
      }
    }
    return lines + [parser.isHeadComplete ? "in a body of \(parser.body.count)" : "in a head, or between messages"]
  }

  private static func request(_ target: RequestTarget, _ parser: MessageParser) -> HTTPRequest {
    HTTPRequest(method: parser.method, path: target.path, query: target.query, headers: parser.headers, body: parser.body)
  }

  /// Bytes cut at random places, each piece in a block of its own.
  private static func withPieces<R>(
    _ bytes: UnsafeRawBufferPointer, _ random: inout SeededRandom, _ body: ([UnsafeRawBufferPointer]) -> R
  ) -> R {
    var pieces: [UnsafeRawBufferPointer] = []
    var rest = bytes
    while !rest.isEmpty {
      let count =
        Bool.random(using: &random) ? min(rest.count, .random(in: 1...3, using: &random)) : .random(in: 1...rest.count, using: &random)
      let block = UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 1)
      block.copyMemory(from: UnsafeRawBufferPointer(rebasing: rest[..<count]))
      pieces.append(UnsafeRawBufferPointer(block))
      rest = UnsafeRawBufferPointer(rebasing: rest[count...])
    }
    defer { for piece in pieces { piece.deallocate() } }
    return body(pieces)
  }

  @Test(arguments: [true, false]) func aMessageMeansTheSameHoweverItIsCutUp(_ isRequests: Bool) {
    // Inputs stay below the limits, which may strike earlier or later in the same message.
    let limits = MessageParser.Limits(fields: 10_000, bodyBytes: 16_384)
    let (whole, cut) =
      isRequests
      ? (MessageParser.requests(limits), MessageParser.requests(limits))
      : (MessageParser.responses(limits), MessageParser.responses(limits))
    let corpus = isRequests ? Self.requests : Self.responses
    let failures = Fuzz(isRequests ? "http requests" : "http responses", corpus: corpus, tokens: Self.tokens, longest: 3_000).run {
      bytes, random in
      let first = Self.read([bytes], whole, requests: isRequests)
      let second = Self.withPieces(bytes, &random) { Self.read($0, cut, requests: isRequests) }
      return first == second ? nil : "whole it is \(first), in pieces \(second)"
    }
    #expect(failures.isEmpty, "\(failures)")
  }

  @Test func noMessageMakesTheParserHoldMoreThanItsLimits() {
    let limits = MessageParser.Limits(fields: 5, bodyBytes: 100)
    let parser = MessageParser.requests(limits)
    let failures = Fuzz("http limits", corpus: Self.requests, tokens: Self.tokens).run { bytes, random in
      parser.reset()
      return Self.withPieces(bytes, &random) { pieces in
        for piece in pieces {
          guard case (_, .incomplete) = parser.parse(piece) else { break }
          if parser.body.count > limits.bodyBytes { return "a body of \(parser.body.count) bytes" }
          if parser.headers.names.count > limits.fields { return "\(parser.headers.names.count) fields" }
        }
        return nil
      }
    }
    #expect(failures.isEmpty, "\(failures)")
  }

  // MARK: Frames

  private static let frames: [[UInt8]] = [
    clientText("hello") + clientFrame(2, [0, 255, 254]) + clientClose(1000, "bye"),
    clientText("he", isFinal: false) + clientFrame(9, [7, 8]) + clientFrame(0, Array("llo".utf8)) + clientFrame(10, []),
    clientFrame(1, [UInt8](repeating: 0x61, count: 126)) + clientFrame(2, [UInt8](repeating: 1, count: 700)),
    clientFrame(1, Array("Gr\u{fc}\u{df}e \u{1F600}".utf8), isFinal: false) + clientFrame(0, [], isFinal: false) + clientFrame(0, []),
    clientFrame(8), clientFrame(1, [], form: .sixtyFourBits) + clientText("x"), clientFrame(1, Array("x".utf8), isMasked: false),
  ]

  /// What the frames mean that come in pieces, up to the first violation.
  private static func read(_ pieces: [UnsafeRawBufferPointer], isMasked: Bool, _ configuration: WebSocketConfiguration) -> [String] {
    let reader = FrameReader()
    var assembly = MessageAssembly()
    var lines: [String] = []
    for piece in pieces {
      reader.feed(piece)
      var isFed = true
      while isFed {
        switch reader.next() {
        case .needsMore: isFed = false
        case .broken: return lines + ["broken"]
        case .chunk(let chunk):
          switch assembly.take(chunk, isMasked: isMasked, configuration) {
          case .wait: break
          case .text(let payload): lines.append("text \(payload.withBytes(of: chunk) { Array($0) })")
          case .binary(let payload): lines.append("binary \(payload.withBytes(of: chunk) { Array($0) })")
          case .ping(let payload): lines.append("ping \(payload.withBytes(of: chunk) { Array($0) })")
          case .pong: lines.append("pong")
          case .close(let payload): lines.append("close \(payload.withBytes(of: chunk) { ClosePayload.read($0) })")
          case .violation(let end): return lines + ["violation \(end)"]
          }
        }
      }
    }
    return lines
  }

  @Test(arguments: [true, false]) func framesMeanTheSameHoweverTheyAreCutUp(_ expectsMask: Bool) {
    let configuration = {
      var configuration = WebSocketConfiguration()
      configuration.maximumMessageBytes = 500
      return configuration
    }()
    let corpus =
      Self.frames + (expectsMask ? [] : [[0x81, 0x02, 0x68, 0x69], [0x01, 0x01, 0x68, 0x80, 0x01, 0x69], [0x88, 0x02, 0x03, 0xE8]])
    let failures = Fuzz(expectsMask ? "frames of clients" : "frames of servers", corpus: corpus, longest: 4_000).run { bytes, random in
      let first = Self.read([bytes], isMasked: expectsMask, configuration)
      let second = Self.withPieces(bytes, &random) { Self.read($0, isMasked: expectsMask, configuration) }
      return first == second ? nil : "whole they are \(first), in pieces \(second)"
    }
    #expect(failures.isEmpty, "\(failures)")
  }

  // MARK: Sockets

  @Test func aServerOutlivesWhateverItsClientsSend() async throws {
    let corpus = Self.requests + Self.frames.map { Array(RawSocket.upgrade().utf8) + $0 }
    let fuzz = Fuzz("http server", corpus: corpus, tokens: Self.tokens, inputs: 2_000)
    let before = Fuzz.residentBytes()
    try await ServerFixture.with { fixture, port in
      for number in fuzz.numbers {
        // Ends of connections keep their ports for a minute, so those of one address would not do for all.
        let socket = try RawSocket(port: port, from: "127.0.1.\(1 + number / 20_000 % 250)")
        try? socket.send(fuzz.input(number).bytes)
        socket.close()
      }
      let count = fuzz.numbers.count
      #expect(await fixture.wait { $0.statistics.accepted == count && $0.statistics.open == 0 })
      #expect(await fixture.wait { $0.opened == $0.ends.count })
      let socket = try RawSocket(port: port)
      try socket.send("GET /hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
      #expect(String(decoding: try socket.readToEnd(), as: UTF8.self).hasSuffix("hello"))
    }
    let grown = (Fuzz.residentBytes() - before) >> 20
    if fuzz.count > 50_000 { print("fuzz http server: \(fuzz.numbers.count) connections, memory grew by \(grown) MiB, seed \(fuzz.seed)") }
    #expect(grown < 512)
  }

  @Test func aClientOutlivesWhateverItsServerSends() async throws {
    let frames: [[UInt8]] = [[0x81, 0x02, 0x68, 0x69, 0x89, 0x00, 0x88, 0x02, 0x03, 0xE8], [0x01, 0x01, 0x68, 0x80, 0x01, 0x69], []]
    let fuzz = Fuzz(
      "websocket client", corpus: Self.responses + frames.map { (Self.responses.first ?? []) + $0 }, tokens: Self.tokens, inputs: 1_000)
    let server = HostileServer()
    let address = try await server.listen { number, received in
      let request = String(decoding: received, as: UTF8.self)
      let key = request.split(separator: "\r\n").first { $0.hasPrefix("Sec-WebSocket-Key: ") }?.dropFirst(19) ?? ""
      let bytes = fuzz.input((fuzz.numbers.first ?? 0) + number).bytes
      let answer = bytes.replacing(Array("ACCEPT".utf8), with: Array(WebSocketKey.accept(String(key)).utf8))
      let middle = answer.count / 2
      return [Array(answer[..<middle]), Array(answer[middle...])]
    }
    let lane = FuzzedClients()
    let outcomes = await lane.connect(fuzz.numbers.count, to: "ws://\(address)/ws")
    #expect(outcomes.connected + outcomes.refused == fuzz.numbers.count)
    #expect(outcomes.connected > fuzz.numbers.count / 50, "too few upgrades pass for the frames to be read")
    #expect(outcomes.connected == outcomes.ended)
    await lane.loop.close()
    await server.close()
  }
}

/// Clients that connect to a server that is none, a few at a time.
private actor FuzzedClients: LoopActor {
  nonisolated let loop = EventLoop(name: "fuzzed-clients")
  private var left = 0
  private var refused = 0
  private var connected = 0
  private let ends = Ends()

  private final class Ends {
    var count = 0
  }

  private final class Handler: WebSocketHandler {
    private let ends: Ends
    init(_ ends: Ends) { self.ends = ends }
    func webSocketOpened(_ connection: WebSocketConnection) {}
    func webSocketReceived(text: UnsafeRawBufferPointer) {}
    func webSocketReceived(binary: UnsafeRawBufferPointer) {}
    func webSocketEnded(_ end: WebSocketEnd) { ends.count += 1 }
  }

  func connect(_ count: Int, to url: String) async -> (connected: Int, refused: Int, ended: Int) {
    left = count
    await withTaskGroup { group in
      for _ in 0..<16 { group.addTask(executorPreference: loop) { await self.connect(to: url) } }
    }
    await eventually("all have ended") { ends.count >= connected }
    return (connected, refused, ends.count)
  }

  private func connect(to url: String) async {
    var configuration = WebSocketConfiguration()
    configuration.subprotocols = ["carillon.v1"]
    configuration.maximumMessageBytes = 4_096
    configuration.closeMilliseconds = 500
    let client = WebSocketClient(on: loop, configuration: configuration, connectMilliseconds: hangMilliseconds, sweepMilliseconds: 50)
    while left > 0 {
      left -= 1
      do throws(WebSocketClientError) {
        _ = try await client.connect(to: url, handler: Handler(ends))
        connected += 1
      } catch { refused += 1 }
    }
  }
}
