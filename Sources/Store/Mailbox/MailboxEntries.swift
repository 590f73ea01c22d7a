public import Notifications
import Redis

/// Entries of a mailbox as they lie in Redis' answer. Valid only during the call that gets them.
///
/// Entries of a newer program are left out, and stay in the mailbox. A page has whole entries, the oldest first. Entries to evict also come oldest first, but without their payloads. Entries to cancel come in
/// no order, without their payloads.
public struct MailboxEntries {
  private let reply: RedisReplyView
  /// The number of entries, including unreadable ones.
  public let count: Int
  /// The size of the whole mailbox, or of what is older than a removal of all in it; nil if the caller did not ask for it.
  public let depth: Int?
  /// The number of entries of a newer program that were left out; 0 if the caller did not ask for it.
  public let newer: Int
  /// The newest removal of all notifications at this device; nil if there is none, or the caller did not ask for it.
  public let floor: JournalReference?

  init(_ reply: RedisReplyView) { (self.reply, count, depth, newer, floor) = (reply, reply.count / 2, nil, 0, nil) }

  /// A page: behind the entries stand the depth, the floor, and the number of entries that were left out.
  init(page reply: RedisReplyView) {
    self.reply = reply
    count = max(0, reply.count - 3) / 2
    newer = reply[2 * count + 2]?.integer.map { Int($0) } ?? 0
    depth = reply[2 * count]?.integer.map { Int($0) }
    floor = reply[2 * count + 1]?.bytes.flatMap { JournalReference($0) }
  }

  /// Hands out each readable entry; answers the unreadable fields, which Carillon did not write.
  public func forEach(_ body: (_ revision: Revision, _ entry: DeliveryEntryView, _ bytes: UnsafeRawBufferPointer) -> Void) -> [[UInt8]] {
    var unreadable: [[UInt8]] = []
    for index in stride(from: 0, to: 2 * count, by: 2) {
      guard let field = reply[index]?.bytes, let bytes = reply[index + 1]?.bytes else { continue }
      if let revision = Revision(bytes: field), let entry = DeliveryEntryView(kept: bytes) {
        body(revision, entry, bytes)
      } else {
        unreadable.append(Array(field))
      }
    }
    return unreadable
  }
}

/// The revisions that were evicted from a mailbox and that the device does not know of: the field `g`.
public struct MailboxGap: Equatable, Sendable {
  /// The oldest.
  public let from: Revision
  /// The newest.
  public let to: Revision

  /// Reads the bytes that Redis keeps; nil for anything else.
  init?(_ bytes: [UInt8]) {
    let revisions = bytes.withUnsafeBytes { bytes in
      [bytes.prefix(Revision.byteCount), bytes.dropFirst(Revision.byteCount)].compactMap {
        Revision(bytes: UnsafeRawBufferPointer(rebasing: $0))
      }
    }
    guard revisions.count == 2 else { return nil }
    (from, to) = (revisions[0], revisions[1])
  }

  /// The bytes that Redis keeps.
  var bytes: [UInt8] { from.withBytes { Array($0) } + to.withBytes { Array($0) } }
}

extension JournalReference {
  /// Reads a revision and an apns-id as the scripts write them; nil if the bytes are something else.
  init?(_ bytes: UnsafeRawBufferPointer) {
    var reader = ByteReader(bytes)
    self.init(&reader)
    guard reader.rest.isEmpty else { return nil }
  }
}
