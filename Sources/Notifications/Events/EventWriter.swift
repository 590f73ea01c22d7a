internal import JSON

/// Writes event records from their facts, one at a time, in buffers that it reuses.
///
/// Each lane has one. `write` sets the headers and the value, which stay until the next `write`.
public struct EventWriter: ~Copyable {
  /// The maximum number of bytes that an event quotes from a producer's wrong text.
  public static var longestText: Int { 640 }

  private let source: String
  private let requestsTopic: String
  private var json = JSONWriter(capacity: 1024)
  private var hashed = ByteBuffer(capacity: 1024)
  /// The values of the event's headers, concatenated: id, time, subject, traceparent.
  private var texts = ByteBuffer(capacity: 256)
  private var subjectCount = 0
  private var type: StaticString = ""
  /// The time of the latest event and its text. The events of a turn share them.
  private var time: (milliseconds: Int64, text: [UInt8]) = (.min, [])
  // Constant parts of each value: the topic of a request in the configured topic, and the worker.
  private let topicMember: [UInt8]
  private let workerMember: [UInt8]

  /// Creates a writer for one worker.
  ///
  /// - Parameters:
  ///   - source: the cluster, as a URI reference: `/carillon/<cluster>`.
  ///   - worker: the worker that emits the events, by its name for people.
  ///   - requestsTopic: the configured requests topic, which facts do not repeat.
  public init(source: String, worker: Name, requestsTopic: String) {
    (self.source, self.requestsTopic) = (source, requestsTopic)
    (topicMember, workerMember) = (Self.member("topic", requestsTopic), Self.member("worker", worker.text))
  }

  private static func member(_ name: StaticString, _ value: String) -> [UInt8] {
    var json = JSONWriter()
    json.member(name, value)
    return json.withUnsafeBytes { Array($0) }
  }

  /// Writes an event at a time in milliseconds since 1970.
  public mutating func write(_ event: EventFacts, at milliseconds: Int64) {
    guard let type = event.type.cloudEventsType else { preconditionFailure("no event tells \(event.type)") }
    self.type = type
    texts.reset()
    appendID(event)
    if milliseconds != time.milliseconds { time = (milliseconds, Timestamp.withText(milliseconds) { Array($0) }) }
    time.text.withUnsafeBytes { texts.append($0) }
    let start = texts.count
    if let id = event.id { id.appendText(to: &texts) } else { texts.append(event.device) }
    subjectCount = texts.count - start
    texts.append(event.traceparent)
    writeValue(event, at: milliseconds)
  }

  /// Passes the value, a JSON object, to `body`.
  public borrowing func withValue<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
    try json.withUnsafeBytes(body)
  }

  /// Calls `body` with each header. The values are valid during the call.
  public borrowing func forEachHeader(_ body: (EventHeader, UnsafeRawBufferPointer) throws -> Void) rethrows {
    try body(.specversion, ("1.0" as StaticString).bytes)
    try body(.type, type.bytes)
    var source = source
    try source.withUTF8 { try body(.source, UnsafeRawBufferPointer($0)) }
    try body(.contentType, ("application/json" as StaticString).bytes)
    let subjectCount = subjectCount
    try texts.withUnsafeBytes { bytes in
      try body(.id, UnsafeRawBufferPointer(rebasing: bytes[0..<32]))
      try body(.time, UnsafeRawBufferPointer(rebasing: bytes[32..<56]))
      if subjectCount > 0 { try body(.subject, UnsafeRawBufferPointer(rebasing: bytes[56..<56 + subjectCount])) }
      let rest = bytes.dropping(56 + subjectCount)
      if !rest.isEmpty { try body(.traceparent, rest) }
    }
  }

  /// Appends the id: a hash of the event's identity, and a hash of its subject.
  ///
  /// The identity is type, request, device, source and discriminator, each with its length.
  private mutating func appendID(_ event: EventFacts) {
    hashed.reset()
    Self.append(type.bytes, to: &hashed)
    if let id = event.id { id.append(to: &hashed) }
    Self.append(event.device, to: &hashed)
    if let position = event.source {
      if event.sourceTopic.isEmpty {
        var topic = requestsTopic
        topic.withUTF8 { Self.append(UnsafeRawBufferPointer($0), to: &hashed) }
      } else {
        Self.append(event.sourceTopic, to: &hashed)
      }
      hashed.append(UInt32(clamping: position.partition))
      hashed.append(UInt64(clamping: position.offset))
    }
    if event.discriminator.isEmpty, case .response(let response, _, _, _, _, _) = event.details {
      Self.append(response, to: &hashed)
    } else {
      Self.append(event.discriminator, to: &hashed)
    }
    let subject = event.id?.hash64 ?? StableHash.hash(event.device)
    let happening = hashed.withUnsafeBytes { StableHash.hash($0, seed: subject) }
    texts.append(count: 32) {
      Hexadecimal.write(subject, to: $0, at: 0)
      Hexadecimal.write(happening, to: $0, at: 16)
    }
  }

  private static func append(_ field: UnsafeRawBufferPointer, to buffer: inout ByteBuffer) {
    buffer.append(UInt32(truncatingIfNeeded: field.count))
    buffer.append(field)
  }

  /// Writes the value, without the facts that a header implies.
  ///
  /// The apns-id is the subject. Without an identifier it is the apns-id, and without a revision it is the source's.
  private mutating func writeValue(_ event: EventFacts, at milliseconds: Int64) {
    json.reset()
    json.openObject()
    member("identifier", event.identifier)
    // The device is the subject of an event without a request.
    if event.id != nil { member("device", event.device) }
    if event.device.isEmpty { member("target", event.target) }
    member("application", event.application)
    member("user", event.user)
    if let position = event.source {
      json.key("source")
      json.openObject()
      if event.sourceTopic.isEmpty { topicMember.withUnsafeBytes { json.members($0) } } else { member("topic", event.sourceTopic) }
      json.member("partition", Int(position.partition))
      json.member("offset", position.offset)
      json.member("timestamp", position.timestamp)
      json.closeObject()
    }
    // Usually it is that of the source.
    if let revision = event.revision, revision != event.source.map({ Revision($0) }) {
      json.key("revision")
      revision.withText { json.string(utf8: $0) }
    }
    if !event.extensions.isEmpty { writeExtensions(ExtensionStates(event.extensions)) }
    workerMember.withUnsafeBytes { json.members($0) }
    writeDetails(event.details, at: milliseconds)
    json.closeObject()
  }

  private mutating func writeExtensions(_ states: ExtensionStates) {
    json.key("extensions")
    json.openArray()
    states.forEach { name, state in
      json.openObject()
      member("name", name)
      json.member("state", word: state.word)
      json.closeObject()
    }
    json.closeArray()
  }

  private mutating func writeDetails(_ details: EventDetails, at milliseconds: Int64) {
    switch details {
    case .none: break
    case .addressed(let devices): json.member("devices", devices)
    case .rejected(let rejection): write(rejection)
    case .limited(let rejection, let retryAfter):
      write(rejection)
      json.key("retryAfter")
      Timestamp.withText(retryAfter) { json.string(utf8: $0) }
    case .by(let id):
      json.key("by")
      json.openObject()
      json.key("apnsId")
      id.withText { json.string(utf8: $0) }
      json.closeObject()
    case .reason(let reason): json.member("reason", word: reason)
    case .skipped(let count): json.member("skipped", count)
    case .stopped(let detail):
      json.member("reason", word: ApplicationStop.eventReason)
      member("detail", detail)
    case .response(let response, let action, let userText, let at, let isDynamic, let isUnanswered):
      member("response", response)
      member("action", action)
      if isDynamic { json.member("dynamic", true) }
      if isUnanswered { json.member("unanswered", true) }
      if let userText {
        json.key("userText")
        json.string(utf8: userText)
      }
      if let at {
        json.key("at")
        // An action cannot be later than its event, whatever the device's clock says.
        Timestamp.withText(min(at, milliseconds)) { json.string(utf8: $0) }
      }
    case .registration(let registration):
      if !registration.isEmpty { json.member("registration", raw: registration) }
    }
  }

  private mutating func write(_ rejection: Rejection) {
    json.member("reason", rejection.reason.rawValue)
    json.member("field", word: rejection.field)
    json.member("rule", rejection.rule)
    if let offset = rejection.offset { json.member("offset", offset) }
  }

  private mutating func member(_ name: StaticString, _ value: UnsafeRawBufferPointer) {
    guard !value.isEmpty else { return }
    json.key(name)
    json.string(utf8: Self.cut(value))
  }

  private static func cut(_ text: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(rebasing: text.prefix(longestText))
  }
}
