public import Notifications
import Redis

/// The mailboxes of devices: a hash for each, from revision to delivery entry.
public final class Mailboxes {
  private let shards: Shards
  private let calls = Calls()

  /// Makes them for these servers.
  public init(_ shards: Shards) { self.shards = shards }

  /// The key of a device's mailbox, for operators.
  public func name(of token: String) -> String { shards.keys.mailbox(token) }

  // MARK: Pages

  /// The oldest entries of the mailbox.
  static let pageScript = RedisScript(file: "mailbox-page")

  /// Reads the oldest entries after the first `skipped`. A page with fewer than `count` entries is the last.
  public func page(
    of token: String, count: Int, skipping skipped: Int = 0, _ then: @escaping (Result<MailboxEntries, StoreError>) -> Void
  ) {
    calls.command.begin(Self.pageScript, keys: [shards.keys.mailbox(token), shards.keys.device(token)])
    calls.command.append(count)
    calls.command.append(skipped)
    calls.send(over: shards.shard(ofDevice: token)) { [keys = shards.keys] answer in
      then(answer.map(MailboxEntries.init(page:)).mapError { $0.about(keys.mailbox(token)) })
    }
  }

  /// Finds out whether the mailbox has an entry.
  public func contains(_ revision: Revision, of token: String, _ then: @escaping (Result<Bool, StoreError>) -> Void) {
    calls.command.begin("HEXISTS")
    calls.command.append(shards.keys.mailbox(token))
    revision.withBytes { calls.command.append($0) }
    calls.send(over: shards.shard(ofDevice: token)) { then($0.map { $0.integer == 1 }) }
  }

  // MARK: Removing

  /// Deletes entries whose outcomes Kafka has. If the call fails, they stay and are paged again.
  public func delete(_ revisions: [Revision], of token: String, _ then: @escaping (StoreError?) -> Void) {
    let bucket = beginDeletion(token)
    for revision in revisions { revision.withBytes { calls.command.append($0) } }
    calls.sendWrite(over: shards.shard(of: bucket), then)
  }

  /// Deletes an entry if it belongs to this apns-id.
  static let deleteScript = RedisScript(file: "mailbox-delete")

  /// Deletes the entry of a request. If another request with the same revision has the entry, it stays.
  public func delete(_ revision: Revision, ofRequest id: NotificationID, of token: String, _ then: @escaping (StoreError?) -> Void) {
    calls.command.begin(Self.deleteScript, keys: [shards.keys.mailbox(token)])
    revision.withBytes { calls.command.append($0) }
    id.withBytes { calls.command.append($0) }
    calls.sendWrite(over: shards.shard(ofDevice: token), then)
  }

  /// Removes unreadable fields, which would otherwise come first in each page. If that fails, the next page finds them again.
  public func remove(unreadable fields: [[UInt8]], of token: String, _ then: @escaping (StoreError?) -> Void) {
    let bucket = beginDeletion(token)
    for field in fields { calls.command.append(field) }
    calls.sendWrite(over: shards.shard(of: bucket), then)
  }

  /// Begins a deletion and answers the bucket.
  private func beginDeletion(_ token: String) -> Int {
    let bucket = shards.keys.bucket(of: token)
    calls.command.begin("HDEL")
    calls.command.beginKey("m", bucket)
    calls.command.extend(token)
    calls.command.endArgument()
    return bucket
  }

  // MARK: A full mailbox

  /// Deletes the entries that a full mailbox evicts, and notes in the device's hash which revisions it missed.
  static let evictScript = RedisScript(file: "mailbox-evict")

  /// Deletes entries whose `evicted` events Kafka has, and answers which entries to evict next.
  ///
  /// - Parameter revisions: oldest first; none for the first answer.
  public func evict(
    _ revisions: [Revision], of token: String, bounds: MailboxBounds, _ then: @escaping (Result<MailboxEntries, StoreError>) -> Void
  ) {
    calls.command.begin(Self.evictScript, keys: [shards.keys.device(token), shards.keys.mailbox(token)])
    calls.command.append(bounds.away)
    calls.command.append(bounds.connected)
    for revision in revisions { revision.withBytes { calls.command.append($0) } }
    calls.send(over: shards.shard(ofDevice: token)) { then($0.map { MailboxEntries($0) }) }
  }

  // MARK: A removal of all

  /// Deletes canceled entries.
  static let cancelScript = RedisScript(file: "mailbox-cancel")

  /// Deletes entries whose `canceled` events Kafka has, and answers which entries to cancel next, with the removal that cancels them: the
  /// newest. Without revisions it answers the first.
  public func cancel(_ revisions: [Revision], of token: String, _ then: @escaping (Result<MailboxEntries, StoreError>) -> Void) {
    calls.command.begin(Self.cancelScript, keys: [shards.keys.device(token), shards.keys.mailbox(token)])
    for revision in revisions { revision.withBytes { calls.command.append($0) } }
    calls.send(over: shards.shard(ofDevice: token)) { then($0.map(MailboxEntries.init(page:))) }
  }
}
