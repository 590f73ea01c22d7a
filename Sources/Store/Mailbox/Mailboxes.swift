public import Notifications
import Redis

/// What waits for devices: a hash for each, revision → delivery entry. Loop-confined.
public final class Mailboxes {
  private let shards: Shards
  private let calls = Calls()

  /// Of these servers.
  public init(_ shards: Shards) { self.shards = shards }

  /// What operators find a device's mailbox under.
  public func name(of token: String) -> String { shards.keys.mailbox(token) }

  // MARK: Pages

  /// The oldest entries of the mailbox.
  static let pageScript = RedisScript(file: PackageResources.mailbox_page_lua)

  /// Reads the oldest entries, all but the first `skipped`; a page of fewer than `count` is the last.
  public func page(
    of token: String, count: Int, skipping skipped: Int = 0, _ then: @escaping (Result<MailboxEntries, StoreError>) -> Void
  ) {
    calls.command.begin(Self.pageScript, keys: 1)
    calls.command.append(shards.keys.mailbox(token))
    calls.command.append(count)
    calls.command.append(skipped)
    calls.send(over: shards.shard(ofDevice: token)) { [keys = shards.keys] answer in
      then(answer.map(MailboxEntries.init).mapError { $0.about(keys.mailbox(token)) })
    }
  }

  /// Whether an entry is there.
  public func contains(_ revision: Revision, of token: String, _ then: @escaping (Result<Bool, StoreError>) -> Void) {
    calls.command.begin("HEXISTS")
    calls.command.append(shards.keys.mailbox(token))
    revision.withBytes { calls.command.append($0) }
    calls.send(over: shards.shard(ofDevice: token)) { then($0.map { $0.integer == 1 }) }
  }

  // MARK: Removing

  /// Deletes entries whose outcome Kafka has. When it fails they stay, and are paged again.
  public func delete(_ revisions: [Revision], of token: String, _ then: @escaping (StoreError?) -> Void) {
    let bucket = beginDeletion(token)
    for revision in revisions { revision.withBytes { calls.command.append($0) } }
    sendDeletion(bucket, then)
  }

  /// Deletes an entry where it is that of an apns-id.
  static let deleteScript = RedisScript(file: PackageResources.mailbox_delete_lua)

  /// Deletes the entry of a request; the entry of another request that names the same place stays.
  public func delete(_ revision: Revision, ofRequest id: NotificationID, of token: String, _ then: @escaping (StoreError?) -> Void) {
    let bucket = shards.keys.bucket(of: token)
    calls.command.begin(Self.deleteScript, keys: 1)
    calls.command.append(shards.keys.mailbox(token))
    revision.withBytes { calls.command.append($0) }
    id.withBytes { calls.command.append($0) }
    sendDeletion(bucket, then)
  }

  /// Removes fields that cannot be read, which would otherwise stand before the others in each page. What stays is found again.
  public func remove(unreadable fields: [[UInt8]], of token: String, _ then: @escaping (StoreError?) -> Void) {
    let bucket = beginDeletion(token)
    for field in fields { calls.command.append(field) }
    sendDeletion(bucket, then)
  }

  /// Answers the bucket.
  private func beginDeletion(_ token: String) -> Int {
    let bucket = shards.keys.bucket(of: token)
    calls.command.begin("HDEL")
    calls.command.beginKey("m", bucket)
    calls.command.extend(token)
    calls.command.endArgument()
    return bucket
  }

  private func sendDeletion(_ bucket: Int, _ then: @escaping (StoreError?) -> Void) {
    calls.send(over: shards.shard(of: bucket)) { answer in
      if case .failure(let error) = answer { then(error) } else { then(nil) }
    }
  }

  // MARK: A full mailbox

  /// Deletes entries that a full mailbox evicts, and notes for the device which revisions it has missed.
  static let evictScript = RedisScript(file: PackageResources.mailbox_evict_lua)

  /// Deletes entries that Kafka has the `evicted` events of, and answers what is to be evicted next.
  ///
  /// - Parameter revisions: oldest first.
  public func evict(
    _ revisions: [Revision], of token: String, maximum: Int, _ then: @escaping (Result<MailboxEntries, StoreError>) -> Void
  ) {
    calls.command.begin(Self.evictScript, keys: 2)
    calls.command.append(shards.keys.device(token))
    calls.command.append(shards.keys.mailbox(token))
    calls.command.append(maximum)
    for revision in revisions { revision.withBytes { calls.command.append($0) } }
    calls.send(over: shards.shard(ofDevice: token)) { then($0.map(MailboxEntries.init)) }
  }
}
