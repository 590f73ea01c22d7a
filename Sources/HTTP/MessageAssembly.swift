/// The rules of RFC 6455, section 5, for the order of frames, and the message that is being assembled.
///
/// A value: it takes chunks and returns their meaning.
struct MessageAssembly {
  /// The place of a whole payload.
  enum Payload {
    /// In the chunk itself, since it came in one piece.
    case chunk
    case assembled([UInt8])
  }

  enum Step {
    /// Nothing is complete yet.
    case wait
    case text(Payload)
    case binary(Payload)
    case close(Payload)
    case ping(Payload)
    case pong
    case violation(WebSocketEnd)
  }

  /// Fragments of an incomplete message.
  private var message: [UInt8] = []
  /// A part of a control frame, which may come between fragments.
  private var control: [UInt8] = []
  /// The message's first opcode; 0 while there is none.
  private var opcode: UInt8 = 0

  /// - Parameters:
  ///   - isMasked: whether the peer's frames must be masked: a client's are, a server's never.
  ///   - configuration: has the limit of a message.
  mutating func take(_ chunk: FrameReader.Chunk, isMasked: Bool, _ configuration: WebSocketConfiguration) -> Step {
    if chunk.isFirst, let end = violation(chunk, isMasked, configuration) { return .violation(end) }
    if chunk.opcode >= WebSocketFrame.Opcode.close { return takeControl(chunk) }
    if chunk.isFirst, chunk.opcode != WebSocketFrame.Opcode.continuation { opcode = chunk.opcode }
    // The usual case: a whole message in one piece is not copied.
    if chunk.isFirst, chunk.isLast, chunk.isFinal, chunk.opcode != WebSocketFrame.Opcode.continuation {
      return whole(chunk.bytes, .chunk)
    }
    message.append(contentsOf: chunk.bytes)
    guard chunk.isLast, chunk.isFinal else { return .wait }
    let bytes = message
    message = []
    return bytes.withUnsafeBytes { whole($0, .assembled(bytes)) }
  }

  private func violation(_ chunk: FrameReader.Chunk, _ isMasked: Bool, _ configuration: WebSocketConfiguration) -> WebSocketEnd? {
    func broken(_ reason: String) -> WebSocketEnd { WebSocketEnd(.protocolViolation, .protocolError, reason) }
    if chunk.isMasked != isMasked {
      return broken(isMasked ? "a client's frames must be masked" : "a server's frames must not be masked")
    }
    if chunk.reservedBits != 0 { return broken("a reserved bit is set") }
    switch chunk.opcode {
    case WebSocketFrame.Opcode.continuation:
      if opcode == 0 { return broken("a continuation without a beginning") }
    case WebSocketFrame.Opcode.text, WebSocketFrame.Opcode.binary:
      if opcode != 0 { return broken("a message inside a fragmented one") }
    case WebSocketFrame.Opcode.close, WebSocketFrame.Opcode.ping, WebSocketFrame.Opcode.pong:
      let isWhole = chunk.isFinal && chunk.length <= UInt64(WebSocketFrame.maximumControlBytes)
      return isWhole ? nil : broken("a control frame that is fragmented or too long")
    default: return broken("a reserved opcode")
    }
    if chunk.length > UInt64(max(0, configuration.maximumMessageBytes - message.count)) {
      return WebSocketEnd(.messageTooBig, configuration.tooBigCode, "at most \(configuration.maximumMessageBytes) bytes")
    }
    return nil
  }

  private mutating func whole(_ bytes: UnsafeRawBufferPointer, _ payload: Payload) -> Step {
    defer { opcode = 0 }
    if opcode == WebSocketFrame.Opcode.binary { return .binary(payload) }
    return isUTF8(bytes) ? .text(payload) : .violation(WebSocketEnd(.invalidText, .invalidPayload, "a text message must be UTF-8"))
  }

  private mutating func takeControl(_ chunk: FrameReader.Chunk) -> Step {
    var payload = Payload.chunk
    if !(chunk.isFirst && chunk.isLast) {
      control.append(contentsOf: chunk.bytes)
      guard chunk.isLast else { return .wait }
      payload = .assembled(control)
      control = []
    }
    switch chunk.opcode {
    case WebSocketFrame.Opcode.close: return .close(payload)
    case WebSocketFrame.Opcode.ping: return .ping(payload)
    default: return .pong
    }
  }
}

extension MessageAssembly.Payload {
  /// Lends the payload's bytes.
  func withBytes<R>(of chunk: FrameReader.Chunk, _ body: (UnsafeRawBufferPointer) -> R) -> R {
    switch self {
    case .chunk: body(chunk.bytes)
    case .assembled(let bytes): bytes.withUnsafeBytes(body)
    }
  }
}

/// The content of a close frame.
struct ClosePayload: Equatable {
  /// 1005 if there is none.
  var code: WebSocketCloseCode
  var reason: String

  /// Reads it; returns the violation if it breaks RFC 6455, section 5.5.1.
  static func read(_ bytes: UnsafeRawBufferPointer) -> Result<ClosePayload, WebSocketEnd> {
    if bytes.isEmpty { return .success(ClosePayload(code: .none, reason: "")) }
    guard bytes.count >= 2 else { return .failure(WebSocketEnd(.protocolViolation, .protocolError, "half a close code")) }
    let code = WebSocketCloseCode(rawValue: UInt16(bytes[0]) << 8 | UInt16(bytes[1]))
    guard code.isSendable else {
      return .failure(WebSocketEnd(.protocolViolation, .protocolError, "a close code that may not be sent"))
    }
    let reason = UnsafeRawBufferPointer(rebasing: bytes[2...])
    guard isUTF8(reason) else { return .failure(WebSocketEnd(.invalidText, .invalidPayload, "a close reason must be UTF-8")) }
    return .success(ClosePayload(code: code, reason: String(decoding: reason, as: UTF8.self)))
  }
}

/// Whether bytes are UTF-8.
func isUTF8(_ bytes: UnsafeRawBufferPointer) -> Bool {
  (try? UTF8Span(validating: bytes.bindMemory(to: UInt8.self).span)) != nil
}
