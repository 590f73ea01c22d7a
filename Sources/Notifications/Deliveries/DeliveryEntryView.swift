/// Reads the form of ``DeliveryEntry`` out of borrowed bytes, which it must not outlive.
public struct DeliveryEntryView {
  /// The apns-id.
  public let id: NotificationID
  /// What the device is to do.
  public let kind: DeliveryEntry.Kind
  /// What the payload asks for.
  public let flags: PayloadFlags
  /// 10, 5 or 1.
  public let priority: UInt8
  /// What kind of notification.
  public let pushType: PushType
  /// Until when it may be shown, in seconds since 1970; 0 is one attempt.
  public let expiration: Int64
  /// Where the request came from first.
  public let source: SourcePosition
  /// When it was published, in milliseconds since 1970: later than its source's time where it came again as new work.
  public let published: Int64
  /// The stable hash of the user that the request is for; 0 when it is for the device.
  public let userHash: UInt64
  /// Whether opening it on one device removes it from the person's others.
  public let removesWhenOpened: Bool
  /// The collapse id; none when the request has none, then its identifier is the id's text.
  public let collapseID: UnsafeRawBufferPointer
  /// The application's bundle id.
  public let application: UnsafeRawBufferPointer
  /// The topic the request came from first; none when it is the configured one.
  public let sourceTopic: UnsafeRawBufferPointer
  /// The trace context; none when there is none.
  public let traceparent: UnsafeRawBufferPointer
  /// The category, escapes resolved; none when there is none.
  public let category: UnsafeRawBufferPointer
  /// The trigger, as JSON; none when it is due now.
  public let trigger: UnsafeRawBufferPointer
  /// The service extensions that it has passed, as ``ExtensionStates``.
  public let extensions: UnsafeRawBufferPointer
  /// The attachments: ``NotificationAttachment/list(_:)``.
  public let attachments: UnsafeRawBufferPointer
  /// The payload; none for a remove.
  public let payload: UnsafeRawBufferPointer
  private let payloadChecksum: UInt32

  /// Reads an entry that was kept in Redis or in Kafka; `nil` also when its head is not as it was written.
  public init?(kept bytes: UnsafeRawBufferPointer) {
    guard let view = DeliveryEntryView(bytes) else { return nil }
    let head = UnsafeRawBufferPointer(rebasing: bytes.dropLast(view.payload.count))
    let checksum = head.loadUnaligned(fromByteOffset: DeliveryEntry.headChecksumOffset, as: UInt32.self)
    guard DeliveryEntry.checksum(head: head) == UInt32(bigEndian: checksum) else { return nil }
    self = view
  }

  /// Whether it removes all notifications of its application.
  public var removesAll: Bool { kind == .remove && collapseID.isEmpty }

  /// Whether it removes what waits for a place, and nothing that was delivered.
  public var removesPending: Bool { kind == .remove && !trigger.isEmpty }

  /// Whether the payload is as it was written, which only an entry with its payload can tell.
  public var isPayloadIntact: Bool { DeliveryEntry.checksum(payload: payload) == payloadChecksum }

  /// Reads an entry of the program's own making, whose checksums it does not look at; `nil` when the bytes are none, or of a version that
  /// is not known.
  public init?(_ bytes: UnsafeRawBufferPointer) {
    var reader = ByteReader(bytes)
    guard bytes.count >= DeliveryEntry.fixedBytes, let idBytes = reader.bytes(NotificationID.byteCount),
      let id = NotificationID(bytes: idBytes),
      let form = reader.byte(), form >> 4 == DeliveryEntry.version,
      let kind = DeliveryEntry.Kind(rawValue: form & (DeliveryEntry.whenOpenedBit - 1)),
      let flags = reader.byte(), let priority = reader.byte(), let pushType = reader.byte().flatMap(PushType.init(rawValue:)),
      let expiration = reader.integer(Int64.self), expiration >= 0, let partition = reader.integer(Int32.self), partition >= 0,
      let offset = reader.integer(Int64.self), offset >= 0, let timestamp = reader.integer(Int64.self),
      (0...Timestamp.latest).contains(timestamp),
      let userHash = reader.integer(UInt64.self), let payloadChecksum = reader.integer(UInt32.self),
      reader.integer(UInt32.self) != nil, let collapseID = reader.shortField(), let application = reader.shortField(),
      let sourceTopic = reader.shortField(), let traceparent = reader.shortField(), let category = reader.longField(),
      let trigger = reader.longField(), let extensions = reader.shortField(),
      let attachments = reader.longField(),
      let published = form & DeliveryEntry.publishedBit == 0 ? timestamp : reader.integer(Int64.self),
      (0...Timestamp.latest).contains(published),
      traceparent.isEmpty || traceparent.count == TraceParent.textCount
    else { return nil }
    (self.id, self.kind, self.flags, self.priority, self.pushType) = (id, kind, PayloadFlags(rawValue: flags), priority, pushType)
    (self.expiration, self.userHash, self.payloadChecksum) = (expiration, userHash, payloadChecksum)
    self.published = published
    removesWhenOpened = form & DeliveryEntry.whenOpenedBit != 0
    source = SourcePosition(partition: partition, offset: offset, timestamp: timestamp)
    (self.collapseID, self.application, self.sourceTopic, self.traceparent) = (collapseID, application, sourceTopic, traceparent)
    (self.category, self.trigger, self.extensions) = (category, trigger, extensions)
    (self.attachments, payload) = (attachments, reader.rest)
  }

  /// The request's identifier, valid during the call: the collapse id, or the id's text.
  public func withIdentifier<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
    collapseID.isEmpty ? try id.withText(body) : try body(collapseID)
  }
}
