/// The value of a record of `notifications.deliveries`.
///
/// The key of the record is the device's token, two digits to a byte.
///
/// | bytes | field |
/// |---|---|
/// | 1 | kind; 128 is added if a revision follows |
/// | 8 | generation of the session |
/// | 0 or 20 | revision of the entry, if it is not that of the entry's source |
/// | rest | entry, for `notify` and `remove` |
public struct DeliveryRecord {
  /// Is added to the kind if a revision follows.
  private static let revisionBit: UInt8 = 128

  /// What the lane does. The raw value is part of the form: never renumber.
  public enum Kind: UInt8, Sendable {
    /// Send the entry's notification.
    case notify = 1
    /// Send the entry's removal.
    case remove = 2
    /// Close the session of this generation: the device is connected elsewhere.
    case takeover = 3
  }

  /// What the lane does.
  public let kind: Kind
  /// The session's generation, as in presence.
  public let generation: UInt64
  /// The entry's revision in the mailbox; zeros without an entry.
  public let revision: Revision
  /// The number of bytes before the entry.
  public let headCount: Int
  /// The entry; nil if there is none, or if its bytes were changed.
  ///
  /// The mailbox has the entry, too.
  public let entry: DeliveryEntryView?
  /// Whether a newer program has written the entry. The mailbox keeps it for a newer worker.
  public let isNewer: Bool

  /// Reads a record, which it must not outlive; `nil` if it is malformed.
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
    isNewer = entry == nil && DeliveryEntryView.isNewer(reader.rest)
    (self.kind, self.generation) = (kind, generation)
    self.revision = revision ?? entry.map { Revision($0.source) } ?? Revision(timestamp: 0, partition: 0, offset: 0)
  }

  /// Appends the record of an encoded entry, as the mailbox has it.
  public static func append(
    encoded entry: UnsafeRawBufferPointer, kind: DeliveryEntry.Kind, revision: Revision, generation: UInt64, to buffer: inout ByteBuffer
  ) {
    appendHead(kind == .notify ? .notify : .remove, generation, revision, of: DeliveryEntry.sourceRevision(in: entry), to: &buffer)
    buffer.append(entry)
  }

  /// Appends the record that ends a session, because its device is connected elsewhere.
  public static func appendTakeover(of generation: UInt64, to buffer: inout ByteBuffer) {
    appendHead(.takeover, generation, to: &buffer)
  }

  /// - Parameters:
  ///   - revision: the entry's revision; nil without an entry.
  ///   - source: the revision of the entry's source.
  private static func appendHead(
    _ kind: Kind, _ generation: UInt64, _ revision: Revision? = nil, of source: Revision? = nil, to buffer: inout ByteBuffer
  ) {
    let own = revision == source ? nil : revision
    buffer.append(kind.rawValue | (own == nil ? 0 : revisionBit))
    buffer.append(generation)
    own?.append(to: &buffer)
  }
}
