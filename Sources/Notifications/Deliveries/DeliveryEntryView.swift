/// Reads the form of ``DeliveryEntry`` from borrowed bytes, which it must not outlive.
public struct DeliveryEntryView {
  /// The apns-id.
  public let id: NotificationID
  /// What the device does.
  public let kind: DeliveryEntry.Kind
  /// What the payload asks of the device.
  public let flags: PayloadFlags
  /// The priority: 10, 5 or 1.
  public let priority: UInt8
  /// The kind of notification.
  public let pushType: PushType
  /// The last time to show it, in seconds since 1970; 0 is one attempt.
  public let expiration: Int64
  /// The first position of the request.
  public let source: SourcePosition
  /// The time of publication, in milliseconds since 1970.
  ///
  /// It is later than the source's time if the request was published again as new work.
  public let published: Int64
  /// The name hash of the request's user; 0 if it is for the device.
  public let userHash: UInt64
  /// Whether opening the notification on one device removes it from the person's others.
  public let removesWhenOpened: Bool
  /// The collapse id; empty if there is none. The identifier is then the id's text.
  public let collapseID: UnsafeRawBufferPointer
  /// The application's bundle id.
  public let application: UnsafeRawBufferPointer
  /// The first topic of the request; empty if it is the configured one.
  public let sourceTopic: UnsafeRawBufferPointer
  /// The trace context; empty if there is none.
  public let traceparent: UnsafeRawBufferPointer
  /// The category, without escapes; empty if there is none.
  public let category: UnsafeRawBufferPointer
  /// The trigger, as JSON; empty if the notification is due now.
  public let trigger: UnsafeRawBufferPointer
  /// The service extensions that processed it, as ``ExtensionStates``.
  public let extensions: UnsafeRawBufferPointer
  /// The attachments: ``NotificationAttachment/list(_:)``.
  public let attachments: UnsafeRawBufferPointer
  /// The payload; empty for a removal.
  public let payload: UnsafeRawBufferPointer
  private let payloadChecksum: UInt32

  /// Reads an entry from Redis or Kafka; `nil` if malformed or with a changed head.
  public init?(kept bytes: UnsafeRawBufferPointer) {
    guard let view = DeliveryEntryView(bytes) else { return nil }
    let head = UnsafeRawBufferPointer(rebasing: bytes.dropLast(view.payload.count))
    let checksum = head.loadUnaligned(fromByteOffset: DeliveryEntry.headChecksumOffset, as: UInt32.self)
    guard DeliveryEntry.checksum(head: head) == UInt32(bigEndian: checksum) else { return nil }
    self = view
  }

  /// Whether it removes all notifications of its application.
  public var removesAll: Bool { kind == .remove && collapseID.isEmpty }

  /// Whether it removes location requests, and no delivered notifications.
  public var removesPending: Bool { kind == .remove && !trigger.isEmpty }

  /// Whether the payload is unchanged. The entry must have its payload.
  public var isPayloadIntact: Bool { DeliveryEntry.checksum(payload: payload) == payloadChecksum }

  /// Whether bytes that are no readable entry are one of a newer program.
  ///
  /// The first 64 bytes have the same form in every version. The top bytes of the timestamp tell such an entry from other data. The piece
  /// `layouts` of the scripts has the same rule.
  public static func isNewer(_ bytes: UnsafeRawBufferPointer) -> Bool {
    bytes.count >= DeliveryEntry.fixedBytes && Layout.entry.isNewer(bytes[NotificationID.byteCount] >> 4)
      && bytes[DeliveryEntry.timestampOffset] == 0 && bytes[DeliveryEntry.timestampOffset + 1] == 0
  }

  /// Reads an entry of this program; `nil` if malformed or of an unknown version.
  ///
  /// It does not check the checksums.
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

  /// Passes the collapse id, or else the id's text, to `body`. It is valid during the call.
  public func withIdentifier<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
    collapseID.isEmpty ? try id.withText(body) : try body(collapseID)
  }
}
