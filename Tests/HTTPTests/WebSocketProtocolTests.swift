import HTTP
import TestSupport
import Testing

/// What a client sends after the upgrade, and all that the server answers up to its end.
private struct Conversation: Sendable {
  var name: String
  var sent: [UInt8]
  var answered: [RawFrame]
  /// Of the end that the handler is told.
  var cause: WebSocketEnd.Cause

  /// The client closes with 1000 after it.
  init(_ name: String, _ sent: [UInt8], _ answered: [RawFrame]) {
    self.name = name
    self.sent = sent + clientClose(1000)
    self.answered = answered + [.close(1000)]
    cause = .peerClosed
  }

  /// The server ends it.
  init(_ name: String, _ sent: [UInt8], _ answered: [RawFrame] = [], close: Int?, _ cause: WebSocketEnd.Cause) {
    self.name = name
    self.sent = sent
    self.answered = answered + [.close(close)]
    self.cause = cause
  }
}

private func ascii(_ count: Int) -> [UInt8] { [UInt8](repeating: 0x61, count: count) }
private let kosme: [UInt8] = [0xCE, 0xBA, 0xE1, 0xBD, 0xB9, 0xCF, 0x83, 0xCE, 0xBC, 0xCE, 0xB5]

private let valid: [Conversation] = [
  Conversation("text", clientText("hello"), [.text("hello")]),
  Conversation("empty text", clientText(""), [.text("")]),
  Conversation("binary", clientFrame(2, [0, 255, 254]), [.binary([0, 255, 254])]),
  Conversation("125 bytes", clientFrame(1, ascii(125)), [RawFrame(opcode: 1, payload: ascii(125))]),
  Conversation("126 bytes", clientFrame(1, ascii(126)), [RawFrame(opcode: 1, payload: ascii(126))]),
  Conversation("65,535 bytes", clientFrame(2, ascii(65_535)), [.binary(ascii(65_535))]),
  Conversation("65,536 bytes", clientFrame(2, ascii(65_536)), [.binary(ascii(65_536))]),
  Conversation("as large as allowed", clientFrame(1, ascii(70_000)), [RawFrame(opcode: 1, payload: ascii(70_000))]),
  Conversation(
    "three fragments",
    clientText("he", isFinal: false) + clientFrame(0, Array("ll".utf8), isFinal: false) + clientFrame(0, Array("o".utf8)),
    [.text("hello")]),
  Conversation(
    "empty fragments", clientText("", isFinal: false) + clientFrame(0, [], isFinal: false) + clientFrame(0, []), [.text("")]),
  Conversation(
    "a ping between fragments", clientText("he", isFinal: false) + clientFrame(9, [7, 8]) + clientFrame(0, Array("y".utf8)),
    [.pong([7, 8]), .text("hey")]),
  Conversation("ping of 125 bytes", clientFrame(9, ascii(125)), [.pong(ascii(125))]),
  Conversation("pong that nobody asked for", clientFrame(10, [1]) + clientText("x"), [.text("x")]),
  Conversation("UTF-8", clientFrame(1, kosme), [RawFrame(opcode: 1, payload: kosme)]),
  Conversation(
    "a character over two fragments", clientFrame(1, Array(kosme[..<3]), isFinal: false) + clientFrame(0, Array(kosme[3...])),
    [RawFrame(opcode: 1, payload: kosme)]),
  Conversation("the last code point", clientFrame(1, [0xF4, 0x8F, 0xBF, 0xBF]), [RawFrame(opcode: 1, payload: [0xF4, 0x8F, 0xBF, 0xBF])]),
  Conversation("binary need not be UTF-8", clientFrame(2, [0xC0], isFinal: false) + clientFrame(0, [0x80]), [.binary([0xC0, 0x80])]),
]

private func violation(_ name: String, _ sent: [UInt8], _ code: Int, _ cause: WebSocketEnd.Cause) -> Conversation {
  Conversation(name, sent, close: code, cause)
}

private let violations: [Conversation] = [
  violation("not masked", clientFrame(1, ascii(5), isMasked: false), 1002, .protocolViolation),
  violation("first reserved bit", clientFrame(1, ascii(5), reserved: 4), 1002, .protocolViolation),
  violation("last reserved bit", clientFrame(9, [], reserved: 1), 1002, .protocolViolation),
  violation("reserved opcode 3", clientFrame(3, ascii(5)), 1002, .protocolViolation),
  violation("reserved opcode 7", clientFrame(7), 1002, .protocolViolation),
  violation("reserved control opcode 11", clientFrame(11), 1002, .protocolViolation),
  violation("reserved control opcode 15", clientFrame(15, [1]), 1002, .protocolViolation),
  violation("fragmented ping", clientFrame(9, [1], isFinal: false), 1002, .protocolViolation),
  violation("ping of 126 bytes", clientFrame(9, ascii(126)), 1002, .protocolViolation),
  violation("close of 126 bytes", clientClose(1000, String(repeating: "r", count: 124)), 1002, .protocolViolation),
  violation("continuation of nothing", clientFrame(0, ascii(1)), 1002, .protocolViolation),
  violation("last continuation of nothing", clientFrame(0, [], isFinal: false), 1002, .protocolViolation),
  violation("a message in a message", clientText("a", isFinal: false) + clientText("b"), 1002, .protocolViolation),
  violation("binary in a text", clientText("a", isFinal: false) + clientFrame(2, [1], isFinal: false), 1002, .protocolViolation),
  violation("length longer than needed", clientFrame(1, ascii(5), form: .sixteenBits), 1002, .protocolViolation),
  violation("length much longer than needed", clientFrame(1, ascii(200), form: .sixtyFourBits), 1002, .protocolViolation),
  violation("length of 64 bits", [0x81, 0xFF] + [UInt8](repeating: 0xFF, count: 8) + ascii(20), 1002, .protocolViolation),
  violation("a byte that is none", clientFrame(1, [0xFF]), 1007, .invalidText),
  violation("overlong slash", clientFrame(1, [0xC0, 0xAF]), 1007, .invalidText),
  violation("surrogate", clientFrame(1, [0xED, 0xA0, 0x80]), 1007, .invalidText),
  violation("beyond the last code point", clientFrame(1, [0xF4, 0x90, 0x80, 0x80]), 1007, .invalidText),
  violation("cut character", clientFrame(1, kosme.dropLast()), 1007, .invalidText),
  violation(
    "cut character over fragments", clientFrame(1, [0xE1], isFinal: false) + clientFrame(0, [0xBD], isFinal: false) + clientFrame(0, []),
    1007,
    .invalidText),
  violation(
    "broken character over fragments", clientFrame(1, [0x61, 0xE1], isFinal: false) + clientFrame(0, [0x62]), 1007,
    .invalidText),
  violation("too large", clientFrame(1, ascii(70_001)), 1009, .messageTooBig),
  violation("too large in claim", [0x82, 0xFF, 0x7F] + [UInt8](repeating: 0xFF, count: 7) + ascii(20), 1009, .messageTooBig),
  violation("too large in fragments", clientFrame(1, ascii(69_999), isFinal: false) + clientFrame(0, ascii(2)), 1009, .messageTooBig),
  violation("half a close code", clientFrame(8, [3]), 1002, .protocolViolation),
  violation("a close reason that is not UTF-8", clientFrame(8, [3, 0xE8, 0xC0, 0xAF]), 1007, .invalidText),
]

private let closes: [Conversation] =
  [
    Conversation("close without a code", clientFrame(8), close: nil, .peerClosed),
    Conversation("close with a reason", clientClose(1000, "bye"), close: 1000, .peerClosed),
    Conversation("close with the longest reason", clientClose(1001, String(repeating: "r", count: 123)), close: 1001, .peerClosed),
    Conversation("frames behind a close", clientClose(1000) + clientText("too late") + ascii(50), close: 1000, .peerClosed),
  ]
  + [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 3000, 3999, 4000, 4999].map {
    Conversation("close \($0)", clientClose($0), close: $0, .peerClosed)
  }
  + [0, 1, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65535].map {
    Conversation("close \($0)", clientClose($0), close: 1002, .protocolViolation)
  }

@Suite struct WebSocketProtocolTests {
  enum Delivery: CaseIterable { case whole, byteByByte, withTheUpgrade }

  @Test(arguments: Delivery.allCases)
  func everyConversationEndsAsTheProtocolSays(delivery: Delivery) async throws {
    try await ServerFixture.with { fixture, port in
      for (number, conversation) in (valid + violations + closes).enumerated() {
        // Byte by byte takes its time; a large frame shows nothing there that a small one does not.
        if delivery == .byteByByte, conversation.sent.count > 1000 { continue }
        let socket = try RawSocket(port: port)
        switch delivery {
        case .whole:
          try socket.send(RawSocket.upgrade())
          _ = try socket.read(through: "\r\n\r\n")
          try socket.send(conversation.sent)
        case .byteByByte: socket.sendByteByByte(Array(RawSocket.upgrade().utf8) + conversation.sent)
        case .withTheUpgrade: try socket.send(Array(RawSocket.upgrade().utf8) + conversation.sent)
        }
        if delivery != .whole { #expect(try socket.read(through: "\r\n\r\n").hasPrefix("HTTP/1.1 101 ")) }
        let bytes = try socket.readToEnd()
        let frames = serverFrames(bytes)?.map(\.withoutReason)
        #expect(frames == conversation.answered, "\(conversation.name)")
        socket.close()
        #expect(await fixture.wait { $0.statistics.open == 0 && $0.ends.count == $0.opened }, "\(conversation.name)")
        let end = await fixture.ends.last
        #expect(end?.cause == conversation.cause, "\(conversation.name) (\(number)): \(String(describing: end))")
      }
    }
  }

  @Test func keyIsAnsweredAsInTheStandardsExample() async throws {
    try await ServerFixture.with { _, port in
      let socket = try RawSocket(port: port)
      try socket.send(RawSocket.upgrade(protocols: "other, carillon.v1"))
      let response = try socket.read(through: "\r\n\r\n")
      #expect(response.hasPrefix("HTTP/1.1 101 Switching Protocols\r\n"))
      #expect(response.contains("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"))
      #expect(response.contains("Sec-WebSocket-Protocol: carillon.v1\r\n"))
    }
  }

  @Test func upgradesThatMayNotPassAreToldWhy() async throws {
    let refusals: [(request: String, status: Int, contains: String)] = [
      ("GET /ws HTTP/1.1\r\nHost: a\r\n\r\n", 426, "Sec-WebSocket-Version: 13\r\n"),
      ("GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n", 426, "Upgrade: websocket\r\n"),
      (RawSocket.upgrade(version: "8"), 426, "Sec-WebSocket-Version: 13\r\n"),
      (RawSocket.upgrade(key: "short"), 400, "Sec-WebSocket-Key"),
      (RawSocket.upgrade(key: "dGhlIHNhbXBsZSBub25j!Q=="), 400, "Sec-WebSocket-Key"),
      (RawSocket.upgrade(more: "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"), 400, "Sec-WebSocket-Key"),
      (RawSocket.upgrade(protocols: nil), 400, "carillon.v1"),
      (RawSocket.upgrade(protocols: "carillon.v2"), 400, "carillon.v1"),
      (RawSocket.upgrade(more: "Content-Length: 1\r\n") + "x", 400, "body"),
      (RawSocket.upgrade("/ws?refuse=busy"), 429, "Retry-After: 7\r\n"),
      (RawSocket.upgrade("/ws?refuse=full"), 503, "Retry-After: 9\r\n"),
      (RawSocket.upgrade("/nothing", more: "Connection: close\r\n"), 404, ""),
      ("POST /ws HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", 405, "Allow: GET\r\n"),
    ]
    try await ServerFixture.with { fixture, port in
      for refusal in refusals {
        let socket = try RawSocket(port: port)
        try socket.send(refusal.request)
        let response = String(decoding: try socket.readToEnd(), as: UTF8.self)
        #expect(response.hasPrefix("HTTP/1.1 \(refusal.status) "), "\(refusal.request)\(response)")
        #expect(response.contains(refusal.contains), "\(refusal.request)\(response)")
      }
      #expect(await fixture.opened == 0)
    }
  }
}
