public import Notifications
import Redis

/// Entries of a mailbox, oldest first, as they lie in Redis' answer. Valid only during the call that gets them.
public struct MailboxEntries {
  private let reply: RedisReplyView

  init(_ reply: RedisReplyView) { self.reply = reply }

  /// The number of entries, including unreadable ones.
  public var count: Int { reply.count / 2 }

  /// The size of the whole mailbox; nil if the caller did not ask for it.
  public var depth: Int? { reply.count % 2 == 1 ? reply[reply.count - 1]?.integer.map { Int($0) } : nil }

  /// Hands out each readable entry; answers the unreadable fields, which Carillon did not write.
  public func forEach(_ body: (_ revision: Revision, _ entry: DeliveryEntryView, _ bytes: UnsafeRawBufferPointer) -> Void) -> [[UInt8]] {
    var unreadable: [[UInt8]] = []
    for index in stride(from: 0, to: reply.count - 1, by: 2) {
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
    guard bytes.count == 2 * Revision.byteCount else { return nil }
    let parts = bytes.withUnsafeBytes { bytes in
      (
        Revision(bytes: UnsafeRawBufferPointer(rebasing: bytes.prefix(Revision.byteCount))),
        Revision(bytes: UnsafeRawBufferPointer(rebasing: bytes.dropFirst(Revision.byteCount)))
      )
    }
    guard let from = parts.0, let to = parts.1 else { return nil }
    (self.from, self.to) = (from, to)
  }

  /// The bytes that Redis keeps.
  var bytes: [UInt8] { from.withBytes { Array($0) } + to.withBytes { Array($0) } }
}
