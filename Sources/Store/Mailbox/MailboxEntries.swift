public import Notifications
import Redis

/// Entries of a mailbox, oldest first, as they lie in Redis' answer: valid during the call they are an argument of.
public struct MailboxEntries {
  private let reply: RedisReplyView

  init(_ reply: RedisReplyView) { self.reply = reply }

  /// How many there are, what cannot be read included.
  public var count: Int { reply.count / 2 }

  /// How many entries the mailbox has, these included; nil where that was not asked for.
  public var depth: Int? { reply.count % 2 == 1 ? reply[reply.count - 1]?.integer.map { Int($0) } : nil }

  /// Hands out each entry that can be read; answers the fields that cannot, which nobody of ours has put there.
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

/// The revisions that were evicted from a device's mailbox and of which it was not told: its field `g`.
public struct MailboxGap: Equatable, Sendable {
  /// The oldest.
  public let from: Revision
  /// The newest.
  public let to: Revision

  /// Reads the form that Redis keeps; nil for anything else.
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

  /// The form that Redis keeps.
  var bytes: [UInt8] { from.withBytes { Array($0) } + to.withBytes { Array($0) } }
}
