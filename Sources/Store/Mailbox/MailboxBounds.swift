/// How many entries a mailbox keeps.
///
/// A connected device may have more, so that a burst for it does not evict what it is about to take. Its session ends when it acknowledges
/// nothing for a while, and then its mailbox is that of a device that is away.
public struct MailboxBounds: Sendable, Hashable {
  /// Entries of a device that is away.
  var away: Int
  /// Entries of a connected device; at least as many.
  var connected: Int

  /// Creates bounds. By default connected devices have no other one.
  public init(_ away: Int, connected: Int? = nil) {
    (self.away, self.connected) = (away, max(away, connected ?? away))
  }
}
