internal import JSON

/// What a mailbox and a delivery record hold for one device: a notification to show, or an identifier to remove.
///
/// The fields are borrowed; `append(to:)` copies them into the caller's buffer in one form for both places:
///
/// | bytes | field |
/// |---|---|
/// | 16 | apns-id: first, the Redis script takes it from there |
/// | 1 | version in the upper half (4), kind in the lower; 4 is added to the kind where opening it removes it from the person's other devices, 8 where the time of publication follows |
/// | 1 | what the payload asks for, and whether the request comes again |
/// | 1, 1 | priority, push type |
/// | 8 | expiration, in seconds since 1970; 0 is one attempt |
/// | 4, 8, 8 | partition, offset and timestamp of the source |
/// | 8 | hash of the user it is for; 0 when it is for the device |
/// | 4 | checksum of the payload |
/// | 4 | checksum of the head: of all that stands before the payload, but for these four bytes |
/// | 1 + n | identifier; empty when the apns-id is, and for a removal of all notifications |
/// | 1 + n | application |
/// | 1 + n | source topic; empty when it is the configured one |
/// | 1 + n | traceparent, 0 or 55 |
/// | 2 + n | category |
/// | 2 + n | trigger, as JSON; of a removal of what waits for a place `{}` |
/// | 1 + n | service extensions that it has passed: ``ExtensionStates`` |
/// | 2 + n | attachments: ``NotificationAttachment/list(_:)`` |
/// | 0 or 8 | when it was published again, where it was: a time other than that of the source |
/// | rest | payload |
///
/// The checksums tell bytes that were changed where they were kept: of an entry whose head is intact it can at least be told what became of
/// it. A checksum is the lower half of the `StableHash`; where the bytes have a gap, the hash of the first part is the seed of the second.
public struct DeliveryEntry {
  /// What the device is to do. The raw value is the form's: never renumber.
  public enum Kind: UInt8, Sendable {
    /// Show the notification, or wake the application.
    case notify = 1
    /// Take the delivered notification of the identifier away; without an identifier all of the application's that are older.
    case remove = 2
  }

  /// The version that is written.
  static let version: UInt8 = 4
  /// The bytes before the first field of variable length.
  static let fixedBytes = 64
  /// What is added to the kind where opening it removes it from the person's other devices.
  static let whenOpenedBit: UInt8 = 4
  /// What is added to the kind where the time of publication is not that of the source.
  static let publishedBit: UInt8 = 8
  /// The trigger of a removal of what waits for a place.
  private static var anyTrigger: UnsafeRawBufferPointer {
    let text: StaticString = "{}"
    return UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
  }
  /// Where the source stands.
  private static let sourceOffset = 28
  /// Where the head's checksum stands.
  static let headChecksumOffset = 60

  /// The apns-id.
  public var id: NotificationID
  /// What the device is to do.
  public var kind: Kind
  /// What the payload asks for.
  public var flags: PayloadFlags
  /// 10, 5 or 1.
  public var priority: UInt8
  /// What kind of notification.
  public var pushType: PushType
  /// Until when it may be shown, in seconds since 1970; 0 is one attempt.
  public var expiration: Int64
  /// Where the request came from first.
  public var source: SourcePosition
  /// When it was published, in milliseconds since 1970: later than its source's time where it comes again as new work.
  public var published: Int64
  /// The stable hash of the user that the request is for; 0 when it is for the device.
  public var userHash: UInt64
  /// Whether opening it on one device removes it from the person's others.
  public var removesWhenOpened: Bool
  /// The identifier; none when the apns-id is.
  public var identifier: UnsafeRawBufferPointer
  /// The application's bundle id.
  public var application: UnsafeRawBufferPointer
  /// The topic the request came from first; none when it is the configured one.
  public var sourceTopic: UnsafeRawBufferPointer
  /// The trace context; none when there is none.
  public var traceparent: UnsafeRawBufferPointer
  /// The category as a JSON string, quotes included; none when there is none.
  public var categorySource: UnsafeRawBufferPointer
  /// The trigger, as JSON; none when it is due now. A removal that has one takes what waits for a place.
  public var trigger: UnsafeRawBufferPointer
  /// The service extensions that it has passed, as ``ExtensionStates``; none where it has passed none.
  public var extensions: UnsafeRawBufferPointer
  /// The attachments, as ``NotificationAttachment/append(_:to:)`` writes them; none where it has none.
  public var attachments: UnsafeRawBufferPointer
  /// The payload; none for a remove.
  public var payload: UnsafeRawBufferPointer

  /// The entry of a notification, which it borrows.
  public init(_ request: RequestView) {
    id = request.envelope.id
    kind = request.operation == .remove ? .remove : .notify
    flags = request.facts.flags
    if request.envelope.origin != nil { flags.insert(.comesAgain) }
    priority = request.priority
    pushType = request.pushType
    expiration = request.expiration
    source = request.envelope.source
    published = request.envelope.published
    userHash = request.target.userHash
    removesWhenOpened = request.removesWhenOpened
    identifier = request.envelope.collapseID
    application = request.application
    sourceTopic = .none
    traceparent = request.envelope.traceparent
    categorySource = request.facts.categorySource
    trigger = request.removesPending ? Self.anyTrigger : request.placeTrigger
    extensions = .none
    attachments = .none
    payload = request.payload
  }

  /// The entry of a notification whose service extensions have left another payload.
  ///
  /// - Parameters:
  ///   - entry: the entry of the notification as it was published.
  ///   - payload: what they have left.
  ///   - facts: of that payload.
  ///   - extensions: what became of it at each, as ``ExtensionStates``.
  ///   - attachments: what they have attached, as ``NotificationAttachment/append(_:to:)`` writes it.
  public init(
    _ entry: DeliveryEntryView, payload: UnsafeRawBufferPointer, _ facts: PayloadFacts, extensions: UnsafeRawBufferPointer,
    attachments: UnsafeRawBufferPointer = UnsafeRawBufferPointer(start: nil, count: 0)
  ) {
    id = entry.id
    kind = entry.kind
    flags = facts.flags.union(entry.flags.intersection(.comesAgain))
    priority = entry.priority
    pushType = entry.pushType
    expiration = entry.expiration
    source = entry.source
    published = entry.published
    userHash = entry.userHash
    removesWhenOpened = entry.removesWhenOpened
    identifier = entry.collapseID
    application = entry.application
    sourceTopic = entry.sourceTopic
    traceparent = entry.traceparent
    categorySource = facts.categorySource
    trigger = entry.trigger
    self.extensions = extensions
    self.attachments = attachments
    self.payload = payload
  }

  /// The entry of a removal of one identifier, one of those the request names.
  ///
  /// - Parameters:
  ///   - identifier: empty where the request removes all.
  ///   - id: the request's id, or one derived from it for a request that names several identifiers.
  public init(removing identifier: UnsafeRawBufferPointer, by request: RequestView, id: NotificationID) {
    self.init(request)
    self.id = id
    self.identifier = identifier
  }

  /// Appends the entry; on an error nothing.
  public func append(to buffer: inout ByteBuffer) throws(RecordCodingError) {
    let start = buffer.count
    id.append(to: &buffer)
    let hasPublished = published != source.timestamp
    buffer.append(
      Self.version << 4 | kind.rawValue | (removesWhenOpened ? Self.whenOpenedBit : 0) | (hasPublished ? Self.publishedBit : 0))
    buffer.append(flags.rawValue)
    buffer.append(priority)
    buffer.append(pushType.rawValue)
    buffer.append(UInt64(clamping: expiration))
    buffer.append(UInt32(clamping: source.partition))
    buffer.append(UInt64(clamping: source.offset))
    buffer.append(UInt64(clamping: source.timestamp))
    buffer.append(userHash)
    buffer.append(Self.checksum(payload: payload))
    buffer.append(UInt32(0))
    do throws(RecordCodingError) {
      try Self.appendShort(identifier, "identifier", to: &buffer)
      try Self.appendShort(application, "application", to: &buffer)
      try Self.appendShort(sourceTopic, "source topic", to: &buffer)
      try Self.appendShort(traceparent, "traceparent", to: &buffer)
      try appendCategory(to: &buffer)
      try Self.appendLong(trigger, "trigger", to: &buffer)
      try Self.appendShort(extensions, "extensions", to: &buffer)
      try Self.appendLong(attachments, "attachments", to: &buffer)
      if hasPublished { buffer.append(UInt64(clamping: published)) }
    } catch {
      buffer.truncate(to: start)
      throw error
    }
    buffer.replace(at: start + Self.headChecksumOffset, with: buffer.withUnsafeBytes(from: start) { Self.checksum(head: $0) })
    buffer.append(payload)
  }

  /// The revision that the source of an encoded entry has; nil where the bytes are none.
  static func sourceRevision(in bytes: UnsafeRawBufferPointer) -> Revision? {
    var reader = ByteReader(bytes.dropping(sourceOffset))
    guard let partition = reader.integer(UInt32.self), let offset = reader.integer(UInt64.self),
      let timestamp = reader.integer(UInt64.self)
    else { return nil }
    return Revision(timestamp: timestamp, partition: partition, offset: offset)
  }

  /// - Parameter head: all that stands before the payload.
  static func checksum(head: UnsafeRawBufferPointer) -> UInt32 {
    let first = StableHash.hash(UnsafeRawBufferPointer(rebasing: head.prefix(headChecksumOffset)))
    return UInt32(truncatingIfNeeded: StableHash.hash(head.dropping(fixedBytes), seed: first))
  }

  static func checksum(payload: UnsafeRawBufferPointer) -> UInt32 { UInt32(truncatingIfNeeded: StableHash.hash(payload)) }

  private func appendCategory(to buffer: inout ByteBuffer) throws(RecordCodingError) {
    guard categorySource.count > 2 else { return try Self.appendLong(.none, "category", to: &buffer) }
    guard categorySource.contains(UInt8(ascii: "\\")) else {
      return try Self.appendLong(
        UnsafeRawBufferPointer(rebasing: categorySource[1..<categorySource.count - 1]), "category", to: &buffer)
    }
    var scanner = JSONScanner(categorySource)
    let text = (try? scanner.skip()).flatMap { scanner.text($0) } ?? ""
    guard text.utf8.count <= Int(UInt16.max) else { throw RecordCodingError(field: "category", limit: Int(UInt16.max)) }
    buffer.append(UInt16(text.utf8.count))
    buffer.append(text)
  }

  static func appendShort(_ bytes: UnsafeRawBufferPointer, _ field: String, to buffer: inout ByteBuffer) throws(RecordCodingError) {
    guard let length = UInt8(exactly: bytes.count) else { throw RecordCodingError(field: field, limit: Int(UInt8.max)) }
    buffer.append(length)
    buffer.append(bytes)
  }

  static func appendLong(_ bytes: UnsafeRawBufferPointer, _ field: String, to buffer: inout ByteBuffer) throws(RecordCodingError) {
    guard let length = UInt16(exactly: bytes.count) else { throw RecordCodingError(field: field, limit: Int(UInt16.max)) }
    buffer.append(length)
    buffer.append(bytes)
  }
}
