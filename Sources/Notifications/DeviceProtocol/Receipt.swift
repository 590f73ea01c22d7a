/// A receipt: what the cluster needs when a device responds to a notification.
///
/// The device gets it with the notification. The caller signs the bytes and makes them text. This is their form:
///
/// | bytes | field |
/// |---|---|
/// | 1 | version: 3; 4 if opening the notification removes it from the person's other devices; 2 lacks the last field |
/// | 16 | apns-id |
/// | 4, 8, 8 | partition, offset and timestamp of the source |
/// | 20 | revision |
/// | 8 | hash of the user it was for; 0 if it was for the device |
/// | 8 | hash of the device token it was delivered to |
/// | 1 + n | collapse id; empty if the identifier is the apns-id |
/// | 1 + n | application |
/// | 1 + n | source topic; empty if it is the configured one |
/// | 1 + n | traceparent, 0 or 55 |
/// | 2 + n | category; empty if it is longer than a device can register |
/// | rest | the category at the time of delivery: ``DeliveredCategory`` |
public struct ReceiptView {
  static let version: UInt8 = 3
  /// The version of a receipt whose notification is removed from other devices when opened.
  private static let whenOpenedVersion: UInt8 = 4
  /// The version of receipts without the category at the time of delivery.
  private static let formerVersion: UInt8 = 2

  /// The apns-id.
  public let id: NotificationID
  /// The first position of the request.
  public let source: SourcePosition
  /// The revision that was delivered.
  public let revision: Revision
  /// The name hash of the request's user; 0 if it was for the device.
  public let userHash: UInt64
  /// Whether opening the notification on one device removes it from the person's others.
  public let removesWhenOpened: Bool
  /// The name hash of the device's token.
  public let deviceHash: UInt64
  /// The collapse id; empty if there is none. The identifier is then the id's text.
  public let collapseID: UnsafeRawBufferPointer
  /// The application's bundle id.
  public let application: UnsafeRawBufferPointer
  /// The first topic of the request; empty if it is the configured one.
  public let sourceTopic: UnsafeRawBufferPointer
  /// The trace context of the request; empty if it has none.
  public let traceparent: UnsafeRawBufferPointer
  /// The category; empty if the notification has none.
  public let category: UnsafeRawBufferPointer
  /// The category at the time of delivery; `nil` in a receipt of an earlier version.
  public let delivered: DeliveredCategory?

  /// Whether a newer program has written a receipt whose signature was checked.
  public static func isNewer(_ bytes: UnsafeRawBufferPointer) -> Bool { bytes.first.map { Layout.receipt.isNewer($0) } ?? false }

  /// Reads a receipt whose signature was checked; `nil` if it is malformed.
  ///
  /// The view must not outlive the bytes.
  public init?(_ bytes: UnsafeRawBufferPointer) {
    var reader = ByteReader(bytes)
    guard let version = reader.byte(), Layout.receipt.versions.contains(Int(version)),
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

  /// Passes the collapse id, or else the id's text, to `body`.
  ///
  /// It is valid during the call.
  public func withIdentifier<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
    collapseID.isEmpty ? try id.withText(body) : try body(collapseID)
  }

  /// Appends the receipt of an entry that is delivered to a device.
  ///
  /// - Parameter known: the present form of the entry's category; `nil` if it has none, or an unknown one.
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
    // The entry's fields have lengths of the same width, so they fit.
    appendShort(entry.collapseID, to: &buffer)
    appendShort(entry.application, to: &buffer)
    appendShort(entry.sourceTopic, to: &buffer)
    appendShort(entry.traceparent, to: &buffer)
    // A longer category cannot be registered, so it counts as none. With it the receipt would exceed the limit of frames.
    let category = entry.category.count <= NotificationCategory.identifierBytes ? entry.category : .empty
    buffer.append(UInt16(category.count))
    buffer.append(category)
    DeliveredCategory.append(known, to: &buffer)
  }

  private static func appendShort(_ field: UnsafeRawBufferPointer, to buffer: inout ByteBuffer) {
    buffer.append(UInt8(truncatingIfNeeded: field.count))
    buffer.append(field)
  }
}
