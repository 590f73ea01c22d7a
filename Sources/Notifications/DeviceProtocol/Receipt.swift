/// What the cluster has to know again when a device responds to a notification, given to the device with it.
///
/// The caller signs the bytes and makes them text; this is only their form:
///
/// | bytes | field |
/// |---|---|
/// | 1 | version: 3, and 4 where opening the notification removes it from the person's other devices; of 2 the last field is missing |
/// | 16 | apns-id |
/// | 4, 8, 8 | partition, offset and timestamp of the source |
/// | 20 | revision |
/// | 8 | hash of the user it was for; 0 when for the device |
/// | 8 | hash of the device token it was delivered to |
/// | 1 + n | collapse id; empty when the identifier is the apns-id |
/// | 1 + n | application |
/// | 1 + n | source topic; empty when it is the configured one |
/// | 1 + n | traceparent, 0 or 55 |
/// | 2 + n | category; empty when it is longer than any that a device can register |
/// | rest | the category as it was when the notification was delivered: ``DeliveredCategory`` |
public struct ReceiptView {
  static let version: UInt8 = 3
  /// The version of receipts of notifications whose opening removes them from the person's other devices.
  private static let whenOpenedVersion: UInt8 = 4
  /// The version of receipts that do not have the category as it was.
  private static let formerVersion: UInt8 = 2

  /// The apns-id.
  public let id: NotificationID
  /// Where the request came from first.
  public let source: SourcePosition
  /// The revision that was delivered.
  public let revision: Revision
  /// The stable hash of the user that the request was for; 0 when it was for the device.
  public let userHash: UInt64
  /// Whether opening it on one device removes it from the person's others.
  public let removesWhenOpened: Bool
  /// The stable hash of the device token that it was delivered to; see ``DeviceToken/hash(_:seed:)``.
  public let deviceHash: UInt64
  /// The collapse id; none when the request has none, then its identifier is the id's text.
  public let collapseID: UnsafeRawBufferPointer
  /// The application's bundle id.
  public let application: UnsafeRawBufferPointer
  /// The topic that the request came from first; none when it is the configured one.
  public let sourceTopic: UnsafeRawBufferPointer
  /// The trace context of the request; none when it has none.
  public let traceparent: UnsafeRawBufferPointer
  /// The category; none when the notification has none.
  public let category: UnsafeRawBufferPointer
  /// The category as it was when the notification was delivered; `nil` in a receipt of an earlier version.
  public let delivered: DeliveredCategory?

  /// Reads a receipt whose signature was checked, and which it must not outlive; `nil` when the bytes are none.
  public init?(_ bytes: UnsafeRawBufferPointer) {
    var reader = ByteReader(bytes)
    guard let version = reader.byte(), (Self.formerVersion...Self.whenOpenedVersion).contains(version),
      let id = reader.bytes(NotificationID.byteCount).flatMap(NotificationID.init(bytes:)),
      let partition = reader.integer(Int32.self), partition >= 0, let offset = reader.integer(Int64.self), offset >= 0,
      let timestamp = reader.integer(Int64.self), (0...Timestamp.latest).contains(timestamp),
      let revision = reader.bytes(Revision.byteCount).flatMap(Revision.init(bytes:)), let userHash = reader.integer(UInt64.self),
      let deviceHash = reader.integer(UInt64.self), let collapseID = reader.shortField(), let application = reader.shortField(),
      let sourceTopic = reader.shortField(), let traceparent = reader.shortField(),
      traceparent.isEmpty || traceparent.count == TraceParent.textCount, let category = reader.longField()
    else { return nil }
    delivered = version == Self.formerVersion ? nil : DeliveredCategory(&reader)
    removesWhenOpened = version == Self.whenOpenedVersion
    guard reader.rest.isEmpty, delivered != nil || version == Self.formerVersion else { return nil }
    (self.id, self.revision, self.userHash, self.deviceHash) = (id, revision, userHash, deviceHash)
    source = SourcePosition(partition: partition, offset: offset, timestamp: timestamp)
    (self.collapseID, self.application, self.sourceTopic) = (collapseID, application, sourceTopic)
    (self.traceparent, self.category) = (traceparent, category)
  }

  /// The identifier, valid during the call: the collapse id, or the id's text.
  public func withIdentifier<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
    collapseID.isEmpty ? try id.withText(body) : try body(collapseID)
  }

  /// Appends the receipt of an entry that is delivered to a device.
  ///
  /// - Parameter known: what the entry's category is now; `nil` where it has none, or nobody has said what it is.
  public static func append(
    of entry: DeliveryEntryView, revision: Revision, deviceHash: UInt64, category known: NotificationCategory? = nil,
    to buffer: inout ByteBuffer
  ) {
    buffer.append(entry.removesWhenOpened ? whenOpenedVersion : version)
    entry.id.append(to: &buffer)
    buffer.append(UInt32(clamping: entry.source.partition))
    buffer.append(UInt64(clamping: entry.source.offset))
    buffer.append(UInt64(clamping: entry.source.timestamp))
    revision.append(to: &buffer)
    buffer.append(entry.userHash)
    buffer.append(deviceHash)
    // The entry's own fields have lengths of the same width, so they fit.
    appendShort(entry.collapseID, to: &buffer)
    appendShort(entry.application, to: &buffer)
    appendShort(entry.sourceTopic, to: &buffer)
    appendShort(entry.traceparent, to: &buffer)
    // Of a longer one the answer is the same as of none, and with it the receipt would be longer than a frame's may be.
    let category = entry.category.count <= NotificationCategory.identifierBytes ? entry.category : .none
    buffer.append(UInt16(category.count))
    buffer.append(category)
    DeliveredCategory.append(known, to: &buffer)
  }

  private static func appendShort(_ field: UnsafeRawBufferPointer, to buffer: inout ByteBuffer) {
    buffer.append(UInt8(truncatingIfNeeded: field.count))
    buffer.append(field)
  }
}
