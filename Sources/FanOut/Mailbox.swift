import Notifications
import Redis
import Worker

/// What sessions ask of their mailboxes in Redis: pages and deletions, without a task for any of them. Loop-confined.
final class Mailbox: RedisReplyHandler {
  /// What was asked, for whom.
  private enum Call {
    case page(generation: UInt64, token: String, asked: Int)
    case delete(generation: UInt64, numbers: [UInt64])
  }

  /// What the mailbox says to the lane: by the session's generation, since the session may be gone.
  struct Answers {
    /// Each entry of the page, oldest first, and its bytes.
    var entry: (_ generation: UInt64, _ revision: Revision, _ entry: DeliveryEntryView, _ bytes: UnsafeRawBufferPointer) -> Void
    /// The page is over.
    var pageEnded: (_ generation: UInt64, _ isWhole: Bool) -> Void
    /// The page could not be read.
    var pageFailed: (_ generation: UInt64) -> Void
    /// Entries are gone from the mailbox.
    var deleted: (_ generation: UInt64, _ numbers: [UInt64]) -> Void
  }

  private let redis: RedisConnection
  private let keys: RedisKeys
  private let logger: Logger
  private let metrics: FanOutMetrics
  private var command = RedisCommand()
  private var calls = NumberedPlaces<Call>()
  /// Who is told; set once by the lane.
  var answers: Answers?

  init(_ redis: RedisConnection, _ keys: RedisKeys, logger: Logger, metrics: FanOutMetrics) {
    self.redis = redis
    self.keys = keys
    self.logger = logger
    self.metrics = metrics
  }

  /// Reads the oldest entries.
  func page(of token: String, generation: UInt64, count: Int) {
    command.begin(SessionScripts.page, keys: 1)
    command.append(keys.mailbox(token))
    command.append(count)
    send(.page(generation: generation, token: token, asked: count))
  }

  /// Deletes entries whose outcome Kafka has.
  ///
  /// When it fails the entries are paged again by a later session, and dropped by the device, which knows them.
  func delete(_ entries: [(number: UInt64, revision: Revision)], of token: String, generation: UInt64) {
    command.begin("HDEL")
    command.append(keys.mailbox(token))
    for entry in entries { entry.revision.withBytes { command.append($0) } }
    send(.delete(generation: generation, numbers: entries.map(\.number)))
  }

  /// Removes fields that cannot be read, which would otherwise stand before the others in each page.
  private func remove(unreadable fields: [[UInt8]], of token: String, generation: UInt64) {
    let key = keys.mailbox(token)
    logger.warning("what cannot be read is removed from a mailbox", ["mailbox": key, "fields": fields.count])
    metrics.unreadableEntries.increment(by: fields.count)
    command.begin("HDEL")
    command.append(key)
    for field in fields { command.append(field) }
    send(.delete(generation: generation, numbers: []))
  }

  /// Sends what was written to `command`.
  private func send(_ call: Call) {
    let number = calls.add(call)
    if redis.send(command, to: self, token: UInt64(number)) != .accepted { failed(number) }
  }

  func redisReplied(token: UInt64, reply: RedisReplyView) {
    switch calls.take(Int(token)) {
    case .page(let generation, let token, let asked):
      var unreadable: [[UInt8]] = []
      for index in stride(from: 0, to: reply.count - 1, by: 2) {
        guard let field = reply[index]?.bytes, let bytes = reply[index + 1]?.bytes else { continue }
        if let revision = Revision(bytes: field), let entry = DeliveryEntryView(kept: bytes) {
          answers?.entry(generation, revision, entry, bytes)
        } else {
          unreadable.append(Array(field))
        }
      }
      if !unreadable.isEmpty { remove(unreadable: unreadable, of: token, generation: generation) }
      answers?.pageEnded(generation, reply.count / 2 < asked)
    case .delete(let generation, let numbers): answers?.deleted(generation, numbers)
    case nil: break
    }
  }

  func redisFailed(token: UInt64, error: RedisError) {
    if error.code == .wrongType || error.code == .rejected { logger.warning("a mailbox cannot be read", ["error": "\(error)"]) }
    failed(Int(token))
  }

  private func failed(_ number: Int) {
    switch calls.take(number) {
    case .page(let generation, _, _): answers?.pageFailed(generation)
    case .delete(let generation, let numbers): answers?.deleted(generation, numbers)
    case nil: break
    }
  }
}
