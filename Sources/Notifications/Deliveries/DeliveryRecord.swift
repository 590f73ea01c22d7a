/// The value of a record of `notifications.deliveries`, whose key is the device token's text.
///
/// | bytes | field |
/// |---|---|
/// | 1 | kind |
/// | 8 | generation of the session it is for |
/// | 20 | revision of the entry; zeros when there is none |
/// | rest | entry, for `notify` and `remove` |
public struct DeliveryRecord {
  /// The bytes before the entry.
  public static var headBytes: Int { 1 + 8 + Revision.byteCount }

  /// What the lane is to do. The raw value is the form's: never renumber.
  public enum Kind: UInt8, Sendable {
    /// Send the entry's notification.
    case notify = 1
    /// Send the entry's removal.
    case remove = 2
    /// Close the session of this generation: the device is connected elsewhere.
    case takeover = 3
    /// Look again whose device it is: its registration has changed.
    case reregistered = 4
  }

  /// What the lane is to do.
  public let kind: Kind
  /// The session's generation, as in presence.
  public let generation: UInt64
  /// The entry's revision, as it stands in the mailbox.
  public let revision: Revision
  /// The entry; none for what has none, and none where its bytes are not as they were written: the mailbox has it, too.
  public let entry: DeliveryEntryView?

  /// Reads a record, which it must not outlive; `nil` when the bytes are none.
  public init?(_ bytes: UnsafeRawBufferPointer) {
    var reader = ByteReader(bytes)
    guard let kind = reader.byte().flatMap(Kind.init(rawValue:)), let generation = reader.integer(UInt64.self),
      let revision = reader.bytes(Revision.byteCount).flatMap(Revision.init(bytes:))
    else { return nil }
    switch kind {
    case .notify, .remove:
      entry = DeliveryEntryView(kept: reader.rest).flatMap { $0.kind.rawValue == kind.rawValue && $0.isPayloadIntact ? $0 : nil }
    case .takeover, .reregistered:
      entry = nil
    }
    (self.kind, self.generation, self.revision) = (kind, generation, revision)
  }

  /// Appends the record of an entry; on an error nothing.
  public static func append(_ entry: DeliveryEntry, revision: Revision, generation: UInt64, to buffer: inout ByteBuffer)
    throws(RecordCodingError)
  {
    let start = buffer.count
    appendHead(entry.kind == .notify ? .notify : .remove, revision, generation, to: &buffer)
    do throws(RecordCodingError) {
      try entry.append(to: &buffer)
    } catch {
      buffer.truncate(to: start)
      throw error
    }
  }

  /// Appends the record of an entry that is encoded already, as the mailbox holds it.
  public static func append(
    encoded entry: UnsafeRawBufferPointer, kind: DeliveryEntry.Kind, revision: Revision, generation: UInt64, to buffer: inout ByteBuffer
  ) {
    appendHead(kind == .notify ? .notify : .remove, revision, generation, to: &buffer)
    buffer.append(entry)
  }

  /// Appends the record that ends the session of a generation, since the device is connected elsewhere.
  public static func appendTakeover(of generation: UInt64, to buffer: inout ByteBuffer) {
    appendHead(.takeover, Revision(timestamp: 0, partition: 0, offset: 0), generation, to: &buffer)
  }

  /// Appends the record that makes the session of a generation look again whose device it is.
  public static func appendReregistered(generation: UInt64, to buffer: inout ByteBuffer) {
    appendHead(.reregistered, Revision(timestamp: 0, partition: 0, offset: 0), generation, to: &buffer)
  }

  private static func appendHead(_ kind: Kind, _ revision: Revision, _ generation: UInt64, to buffer: inout ByteBuffer) {
    buffer.append(kind.rawValue)
    buffer.append(generation)
    revision.append(to: &buffer)
  }
}
