/// The value of a record of `notifications.deliveries`, whose key is the device's token, two digits to a byte.
///
/// | bytes | field |
/// |---|---|
/// | 1 | kind; 128 is added where a revision follows |
/// | 8 | generation of the session it is for |
/// | 0 or 20 | revision of the entry, where it is not that of the entry's source |
/// | rest | entry, for `notify` and `remove` |
public struct DeliveryRecord {
  /// What is added to the kind where a revision follows.
  private static let revisionBit: UInt8 = 128

  /// What the lane is to do. The raw value is the form's: never renumber.
  public enum Kind: UInt8, Sendable {
    /// Send the entry's notification.
    case notify = 1
    /// Send the entry's removal.
    case remove = 2
    /// Close the session of this generation: the device is connected elsewhere.
    case takeover = 3
  }

  /// What the lane is to do.
  public let kind: Kind
  /// The session's generation, as in presence.
  public let generation: UInt64
  /// The entry's revision, as it stands in the mailbox; zeros where there is no entry.
  public let revision: Revision
  /// How many bytes stand before the entry.
  public let headCount: Int
  /// The entry; none for what has none, and none where its bytes are not as they were written: the mailbox has it, too.
  public let entry: DeliveryEntryView?

  /// Reads a record, which it must not outlive; `nil` when the bytes are none.
  public init?(_ bytes: UnsafeRawBufferPointer) {
    var reader = ByteReader(bytes)
    guard let form = reader.byte(), let kind = Kind(rawValue: form & ~Self.revisionBit), let generation = reader.integer(UInt64.self)
    else { return nil }
    var revision: Revision?
    if form & Self.revisionBit != 0 {
      guard let bytes = reader.bytes(Revision.byteCount) else { return nil }
      revision = Revision(bytes: bytes)
    }
    headCount = bytes.count - reader.rest.count
    switch kind {
    case .notify, .remove:
      entry = DeliveryEntryView(kept: reader.rest).flatMap { $0.kind.rawValue == kind.rawValue && $0.isPayloadIntact ? $0 : nil }
    case .takeover:
      entry = nil
    }
    (self.kind, self.generation) = (kind, generation)
    self.revision = revision ?? entry.map { Revision($0.source) } ?? Revision(timestamp: 0, partition: 0, offset: 0)
  }

  /// Appends the record of an entry; on an error nothing.
  public static func append(_ entry: DeliveryEntry, revision: Revision, generation: UInt64, to buffer: inout ByteBuffer)
    throws(RecordCodingError)
  {
    let start = buffer.count
    appendHead(entry.kind == .notify ? .notify : .remove, generation, revision, of: Revision(entry.source), to: &buffer)
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
    appendHead(kind == .notify ? .notify : .remove, generation, revision, of: DeliveryEntry.sourceRevision(in: entry), to: &buffer)
    buffer.append(entry)
  }

  /// Appends the record that ends the session of a generation, since the device is connected elsewhere.
  public static func appendTakeover(of generation: UInt64, to buffer: inout ByteBuffer) {
    appendHead(.takeover, generation, to: &buffer)
  }

  /// - Parameters:
  ///   - revision: of the entry; nil where there is none.
  ///   - source: the revision that the entry's source has.
  private static func appendHead(
    _ kind: Kind, _ generation: UInt64, _ revision: Revision? = nil, of source: Revision? = nil, to buffer: inout ByteBuffer
  ) {
    let own = revision == source ? nil : revision
    buffer.append(kind.rawValue | (own == nil ? 0 : revisionBit))
    buffer.append(generation)
    own?.append(to: &buffer)
  }
}
