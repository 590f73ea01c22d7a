internal import JSON

/// The entry of a mailbox or delivery record: a notification to show, or to remove.
///
/// The fields are borrowed. `append(to:)` copies them into the caller's buffer. Both places use the same form:
///
/// | bytes | field |
/// |---|---|
/// | 16 | apns-id: first, because the Redis script reads it there |
/// | 1 | version in the upper half (4), kind in the lower; the kind has 4 added if opening the notification removes it from the person's other devices, and 8 if the time of publication follows |
/// | 1 | what the payload asks of the device, and whether the request was published again |
/// | 1, 1 | priority, push type |
/// | 8 | expiration, in seconds since 1970; 0 is one attempt |
/// | 4, 8, 8 | partition, offset and timestamp of the source |
/// | 8 | hash of the user it is for; 0 if it is for the device |
/// | 4 | checksum of the payload |
/// | 4 | checksum of the head: of all bytes before the payload except these four |
/// | 1 + n | identifier; empty if it is the apns-id, and for a removal of all notifications |
/// | 1 + n | application |
/// | 1 + n | source topic; empty if it is the configured one |
/// | 1 + n | traceparent, 0 or 55 |
/// | 2 + n | category |
/// | 2 + n | trigger, as JSON; `{}` in a removal of location requests |
/// | 1 + n | service extensions that processed it: ``ExtensionStates`` |
/// | 2 + n | attachments: ``NotificationAttachment/list(_:)`` |
/// | 0 or 8 | time of publication, if it is not that of the source |
/// | rest | payload |
///
/// The checksums detect bytes that were changed in storage. If the head is intact, the entry's outcome can still be emitted. A checksum is
/// the lower half of the `StableHash`. If the bytes have a gap, the hash of the first part is the seed of the second.
public struct DeliveryEntry {
  /// What the device does. The raw value is part of the form: never renumber.
  public enum Kind: UInt8, Sendable {
    /// Show the notification, or wake the application.
    case notify = 1
    /// Remove the delivered notification with the identifier; without one all older notifications of the application.
    case remove = 2
  }

  /// The version that this program writes.
  static var version: UInt8 { UInt8(Layout.entry.newest) }
  /// The number of bytes before the first field of variable length.
  static let fixedBytes = 64
  /// Is added to the kind of a notification that is removed elsewhere when opened.
  static let whenOpenedBit: UInt8 = 4
  /// Is added to the kind if the time of publication is not the source's.
  static let publishedBit: UInt8 = 8
  /// The trigger in a removal of location requests.
  private static var anyTrigger: UnsafeRawBufferPointer {
    let text: StaticString = "{}"
    return UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
  }
  /// The offset of the source.
  private static let sourceOffset = 28
  /// The offset of the source's timestamp.
  static let timestampOffset = 40
  /// The offset of the head's checksum.
  static let headChecksumOffset = 60

  /// The apns-id.
  public var id: NotificationID
  /// What the device does.
  public var kind: Kind
  /// What the payload asks of the device.
  public var flags: PayloadFlags
  /// The priority: 10, 5 or 1.
  public var priority: UInt8
  /// The kind of notification.
  public var pushType: PushType
  /// The last time to show it, in seconds since 1970; 0 is one attempt.
  public var expiration: Int64
  /// The first position of the request.
  public var source: SourcePosition
  /// The time of publication, in milliseconds since 1970.
  ///
  /// It is later than the source's time if the request was published again as new work.
  public var published: Int64
  /// The name hash of the person it is for; 0 if it is for the device, whose ever that is.
  public var userHash: UInt64
  /// Whether opening the notification on one device removes it from the person's others.
  public var removesWhenOpened: Bool
  /// The identifier; empty if it is the apns-id.
  public var identifier: UnsafeRawBufferPointer
  /// The application's bundle id.
  public var application: UnsafeRawBufferPointer
  /// The first topic of the request; empty if it is the configured one.
  public var sourceTopic: UnsafeRawBufferPointer
  /// The trace context; empty if there is none.
  public var traceparent: UnsafeRawBufferPointer
  /// The category as a JSON string with its quotes; empty if there is none.
  public var categorySource: UnsafeRawBufferPointer
  /// The trigger, as JSON; empty if the notification is due now.
  ///
  /// A removal with a trigger removes location requests.
  public var trigger: UnsafeRawBufferPointer
  /// The service extensions that processed it, as ``ExtensionStates``; empty if there are none.
  public var extensions: UnsafeRawBufferPointer
  /// The attachments, as ``NotificationAttachment/append(_:to:)`` writes them; empty if there are none.
  public var attachments: UnsafeRawBufferPointer
  /// The payload; empty for a removal.
  public var payload: UnsafeRawBufferPointer

  /// Creates the entry of a notification, which it borrows.
  public init(_ request: RequestView) {
    id = request.envelope.id
    kind = request.operation == .remove ? .remove : .notify
    flags = request.facts.flags
    if request.envelope.origin != nil { flags.insert(.isRedriven) }
    priority = request.priority
    pushType = request.pushType
    expiration = request.expiration
    source = request.envelope.source
    published = request.envelope.published
    userHash = request.userHash
    removesWhenOpened = request.removesWhenOpened
    identifier = request.envelope.collapseID
    application = request.application
    sourceTopic = .empty
    traceparent = request.envelope.traceparent
    categorySource = request.facts.categorySource
    trigger = request.removesPending ? Self.anyTrigger : request.placeTrigger
    extensions = .empty
    attachments = .empty
    payload = request.payload
  }

  /// Creates the entry of a notification whose service extensions changed the payload.
  ///
  /// - Parameters:
  ///   - entry: the entry of the published notification.
  ///   - payload: the payload after the extensions.
  ///   - facts: the facts of that payload.
  ///   - extensions: the result of each extension, as ``ExtensionStates``.
  ///   - attachments: the attachments of the extensions, as ``NotificationAttachment/append(_:to:)`` writes them.
  public init(
    _ entry: DeliveryEntryView, payload: UnsafeRawBufferPointer, _ facts: PayloadFacts, extensions: UnsafeRawBufferPointer,
    attachments: UnsafeRawBufferPointer = UnsafeRawBufferPointer(start: nil, count: 0)
  ) {
    id = entry.id
    kind = entry.kind
    flags = facts.flags.union(entry.flags.intersection(.isRedriven))
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

  /// Creates the entry of a removal of one identifier that the request names.
  ///
  /// - Parameters:
  ///   - identifier: empty if the request removes all.
  ///   - id: the request's id, or one derived from it if the request names several identifiers.
  public init(removing identifier: UnsafeRawBufferPointer, by request: RequestView, id: NotificationID) {
    self.init(request)
    self.id = id
    self.identifier = identifier
  }

  /// Appends the entry; nothing if it throws.
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

  /// Returns the source's revision of an encoded entry; nil if the bytes are malformed.
  static func sourceRevision(in bytes: UnsafeRawBufferPointer) -> Revision? {
    var reader = ByteReader(bytes.dropping(sourceOffset))
    guard let partition = reader.integer(UInt32.self), let offset = reader.integer(UInt64.self),
      let timestamp = reader.integer(UInt64.self)
    else { return nil }
    return Revision(timestamp: timestamp, partition: partition, offset: offset)
  }

  /// - Parameter head: all bytes before the payload.
  static func checksum(head: UnsafeRawBufferPointer) -> UInt32 {
    let first = StableHash.hash(UnsafeRawBufferPointer(rebasing: head.prefix(headChecksumOffset)))
    return UInt32(truncatingIfNeeded: StableHash.hash(head.dropping(fixedBytes), seed: first))
  }

  static func checksum(payload: UnsafeRawBufferPointer) -> UInt32 { UInt32(truncatingIfNeeded: StableHash.hash(payload)) }

  private func appendCategory(to buffer: inout ByteBuffer) throws(RecordCodingError) {
    guard categorySource.count > 2 else { return try Self.appendLong(.empty, "category", to: &buffer) }
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
