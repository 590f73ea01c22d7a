import CHTTPParser
import Glibc

/// The bytes of the bodies that a server's connections are receiving.
final class BodyBudget {
  private let maximum: Int
  private var used = 0

  init(maximum: Int) { self.maximum = maximum }

  /// Takes bytes; false if they are beyond the maximum.
  func take(_ count: Int) -> Bool {
    guard count <= maximum - used else { return false }
    used += count
    return true
  }

  func release(_ count: Int) { used -= count }
}

/// One message that is being received: http_parser's state, and the head and body so far.
///
/// A connection holds one only while a message is incomplete; parsers are pooled. The parser stops after one message, so the bytes after it
/// (a pipelined request, another protocol) are left to the caller.
final class MessageParser {
  /// The most bytes of a message's first line with its header fields, and of its trailer. http_parser itself counts them.
  private static let maximumHeadBytes: UInt32 = 16_384
  private static let prepared: Void = http_parser_set_max_header_size(maximumHeadBytes)

  /// The limits of a message.
  struct Limits {
    var fields: Int
    var bodyBytes: Int
    /// Whether to keep the beginning of a body that is too large, instead of failing.
    var cutsBody = false
  }

  enum Outcome: Equatable {
    case incomplete
    case complete
    case failed(MessageFailure)
  }

  private enum Piece { case none, name, value }

  private let parser = UnsafeMutablePointer<http_parser>.allocate(capacity: 1)
  private let settings = UnsafeMutablePointer<http_parser_settings>.allocate(capacity: 1)
  private let kind: http_parser_type
  private let limits: Limits
  private let bodies: BodyBudget

  private var head: [UInt8] = []
  private var fields: [HTTPHeaders.Field] = []
  private var piece = Piece.none
  private var targetEnd = 0
  private var field = HTTPHeaders.Field(nameStart: 0, nameEnd: 0, valueStart: 0, valueEnd: 0)
  private var failure: MessageFailure?
  private var isComplete = false
  /// Whether http_parser has stopped after the line's end of a chunk or of its size.
  private var isAtLineEnd = false
  private var lines: LineRules
  private var chunks = ChunkRules()

  private(set) var isHeadComplete = false
  private(set) var body: [UInt8] = []
  private(set) var headers = HTTPHeaders(bytes: [], fields: [])
  /// Whether the connection is kept after the message.
  private(set) var keepsAlive = false
  /// Whether the client waits for `100 Continue` before it sends the body.
  private(set) var expectsContinue = false
  /// Whether it is a GET that asks for the WebSocket protocol.
  private(set) var asksForWebSocket = false

  /// A parser of requests.
  ///
  /// - Parameter bodies: bounds the bodies of all parsers together.
  static func requests(_ limits: Limits, _ bodies: BodyBudget = BodyBudget(maximum: .max)) -> MessageParser {
    MessageParser(HTTP_REQUEST, limits, bodies)
  }

  /// A parser of responses.
  static func responses(_ limits: Limits) -> MessageParser { MessageParser(HTTP_RESPONSE, limits, BodyBudget(maximum: .max)) }

  private init(_ kind: http_parser_type, _ limits: Limits, _ bodies: BodyBudget) {
    Self.prepared
    (self.kind, self.limits, self.bodies) = (kind, limits, bodies)
    lines = LineRules(isRequest: kind == HTTP_REQUEST)
    http_parser_settings_init(settings)
    settings.pointee.on_url = { collect($0, $1, $2) { $0.target($1) } }
    settings.pointee.on_header_field = { collect($0, $1, $2) { $0.name($1) } }
    settings.pointee.on_header_value = { collect($0, $1, $2) { $0.value($1) } }
    settings.pointee.on_headers_complete = { collect($0, nil, 0) { parser, _ in parser.headEnded() } }
    settings.pointee.on_body = { collect($0, $1, $2) { $0.bodyPart($1) } }
    settings.pointee.on_chunk_header = { collect($0, nil, 0) { parser, _ in parser.chunkBegan() } }
    settings.pointee.on_chunk_complete = { collect($0, nil, 0) { parser, _ in if !parser.isTrailing { parser.lineEnded() } } }
    settings.pointee.on_message_complete = { collect($0, nil, 0) { parser, _ in parser.messageEnded() } }
    reset()
  }

  deinit {
    parser.deallocate()
    settings.deallocate()
  }

  /// Prepares it for another message, and releases the memory of the last one.
  func reset() {
    http_parser_init(parser, kind)
    parser.pointee.data = Unmanaged.passUnretained(self).toOpaque()
    head = []
    fields = []
    piece = .none
    targetEnd = 0
    failure = nil
    isComplete = false
    isAtLineEnd = false
    lines = LineRules(isRequest: kind == HTTP_REQUEST)
    chunks = ChunkRules()
    isHeadComplete = false
    bodies.release(Self.counted(body.count))
    body = []
    headers = HTTPHeaders(bytes: [], fields: [])
    keepsAlive = false
    expectsContinue = false
    asksForWebSocket = false
  }

  /// Takes bytes up to the end of the message.
  ///
  /// - Returns: the number of taken bytes, and the message's state. After a failure only `reset` may follow.
  func parse(_ bytes: UnsafeRawBufferPointer) -> (consumed: Int, outcome: Outcome) {
    var consumed = 0
    while consumed < bytes.count {
      let (count, outcome) = parseStep(UnsafeRawBufferPointer(rebasing: bytes[consumed...]))
      consumed += count
      if outcome != .incomplete { return (consumed, outcome) }
    }
    return (consumed, .incomplete)
  }

  /// Takes bytes up to the end of the head, of a line between chunks, or of the message.
  private func parseStep(_ bytes: UnsafeRawBufferPointer) -> (consumed: Int, outcome: Outcome) {
    var bytes = bytes
    if !lines.hasEnded {
      let (count, fault) = lines.take(bytes)
      if let fault { return (0, .failed(fault)) }
      bytes = UnsafeRawBufferPointer(rebasing: bytes[..<count])
    }
    let isInChunks = isHeadComplete && isChunked && !isTrailing
    let consumed = http_parser_execute(parser, settings, bytes.baseAddress?.assumingMemoryBound(to: CChar.self), bytes.count)
    if let failure { return (consumed, .failed(failure)) }
    if isInChunks, let fault = chunks.take(UnsafeRawBufferPointer(rebasing: bytes.prefix(consumed)), isAtEnd: isAtLineEnd) {
      return (consumed, .failed(fault))
    }
    if isComplete { return (consumed, .complete) }
    if isAtLineEnd {
      isAtLineEnd = false
      http_parser_pause(parser, 0)
      if isTrailing { lines.beginTrailer() }
      return (consumed, .incomplete)
    }
    let error = http_errno(rawValue: UInt32(parser.pointee.http_errno))
    switch error {
    case HPE_OK: return (consumed, .incomplete)
    case HPE_HEADER_OVERFLOW: return (consumed, .failed(.headTooLarge))
    default: return (consumed, .failed(.malformed(String(cString: http_errno_description(error)))))
    }
  }

  private var isChunked: Bool { UInt32(parser.pointee.flags) & F_CHUNKED.rawValue != 0 }
  private var isTrailing: Bool { UInt32(parser.pointee.flags) & F_TRAILING.rawValue != 0 }

  // MARK: Parts of the message

  /// The request's method.
  var method: HTTPMethod { HTTPMethod(rawValue: String(cString: http_method_str(http_method(rawValue: UInt32(parser.pointee.method))))) }
  /// The response's status.
  var status: Int { Int(parser.pointee.status_code) }
  /// HTTP/1.1, not 1.0.
  var isVersion11: Bool { parser.pointee.http_minor >= 1 }

  /// The request target as sent.
  private(set) var target = ""

  // MARK: Callbacks

  private func target(_ bytes: UnsafeRawBufferPointer) {
    head.append(contentsOf: bytes)
    targetEnd = head.count
  }

  private func name(_ bytes: UnsafeRawBufferPointer) {
    // Fields after a chunked body are not used.
    if isHeadComplete { return }
    if piece != .name {
      finishField()
      piece = .name
      field.nameStart = head.count
    }
    head.append(contentsOf: bytes)
  }

  private func value(_ bytes: UnsafeRawBufferPointer) {
    if isHeadComplete { return }
    if piece != .value {
      piece = .value
      field.nameEnd = head.count
      field.valueStart = head.count
    }
    head.append(contentsOf: bytes)
  }

  private func finishField() {
    guard piece == .value else { return }
    piece = .none
    field.valueEnd = head.count
    while field.valueEnd > field.valueStart, [0x20, 0x09].contains(head[field.valueEnd - 1]) { field.valueEnd -= 1 }
    // Debian's build of the library accepts a space in a name, which other servers read as its end.
    if head[field.nameStart..<field.nameEnd].contains(0x20) { failure = .malformed("white space in a header field's name") }
    fields.append(field)
    if fields.count > limits.fields { failure = .headTooLarge }
  }

  private func headEnded() {
    finishField()
    isHeadComplete = true
    target = String(decoding: head[..<targetEnd], as: UTF8.self)
    headers = HTTPHeaders(bytes: head, fields: fields)
    head = []
    fields = []
    keepsAlive = http_should_keep_alive(parser) != 0
    if kind == HTTP_REQUEST { judgeRequest() }
  }

  private func judgeRequest() {
    if failure != nil { return }
    let parts = RequestHead(
      major: Int(parser.pointee.http_major), minor: Int(parser.pointee.http_minor), headers: headers,
      isChunked: isChunked)
    failure = parts.failure
    if failure != nil { return }
    let length = parser.pointee.content_length
    if length != UInt64.max, length > UInt64(limits.bodyBytes) {
      failure = .bodyTooLarge(maximum: limits.bodyBytes)
      return
    }
    expectsContinue = isVersion11 && headers["Expect"] != nil
    asksForWebSocket =
      isVersion11 && method == .get && headers.hasToken("websocket", in: "Upgrade") && headers.hasToken("upgrade", in: "Connection")
    // Every other offered protocol is declined, and so is CONNECT: the message is read as an ordinary one.
    if !asksForWebSocket { parser.pointee.upgrade = 0 }
  }

  /// The first bytes of each body do not count, so that long bodies never keep a short one out.
  private static let uncountedBytes = 16_384

  /// The bytes of a body of this length that count.
  private static func counted(_ count: Int) -> Int { max(0, count - uncountedBytes) }

  private func bodyPart(_ bytes: UnsafeRawBufferPointer) {
    let room = limits.bodyBytes - body.count
    if bytes.count > room, !limits.cutsBody {
      failure = .bodyTooLarge(maximum: limits.bodyBytes)
      return
    }
    let part = bytes.prefix(room)
    guard bodies.take(Self.counted(body.count + part.count) - Self.counted(body.count)) else {
      failure = .bodiesTooLarge
      return
    }
    body.append(contentsOf: part)
  }

  /// Refuses a chunk that has no room, before its bytes come.
  private func chunkBegan() {
    if !limits.cutsBody, parser.pointee.content_length > UInt64(limits.bodyBytes - body.count) {
      failure = .bodyTooLarge(maximum: limits.bodyBytes)
    } else {
      lineEnded()
    }
  }

  /// Stops the parser here, so that the line's bytes are known.
  private func lineEnded() {
    isAtLineEnd = true
    http_parser_pause(parser, 1)
  }

  private func messageEnded() {
    isComplete = true
    http_parser_pause(parser, 1)
  }

  /// Enters a callback; 0 continues, 1 stops http_parser.
  fileprivate static func enter(
    _ parser: UnsafeMutablePointer<http_parser>?, _ bytes: UnsafeRawBufferPointer, _ body: (MessageParser, UnsafeRawBufferPointer) -> Void
  ) -> Int32 {
    guard let data = parser?.pointee.data else { return 1 }
    let message = Unmanaged<MessageParser>.fromOpaque(data).takeUnretainedValue()
    body(message, bytes)
    return message.failure == nil ? 0 : 1
  }
}

private func collect(
  _ parser: UnsafeMutablePointer<http_parser>?, _ start: UnsafePointer<CChar>?, _ count: Int,
  _ body: (MessageParser, UnsafeRawBufferPointer) -> Void
) -> Int32 {
  MessageParser.enter(parser, UnsafeRawBufferPointer(start: start, count: count), body)
}
