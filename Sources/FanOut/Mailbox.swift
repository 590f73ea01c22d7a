import Notifications
import Redis
import Worker

/// What sessions ask of their mailboxes in Redis: pages and deletions, without a task for any of them. Loop-confined.
final class Mailbox: RedisReplyHandler {
  /// What was asked, for whom.
  private enum Call {
    case page(generation: UInt64, asked: Int)
    case delete(generation: UInt64, numbers: [UInt64])
  }

  /// What the mailbox says to the lane: by the session's generation, since the session may be gone.
  struct Answers {
    /// Each entry of the page, oldest first, then nil.
    var entry: (_ generation: UInt64, _ revision: Revision, _ entry: UnsafeRawBufferPointer) -> Void
    /// The page is over.
    var pageEnded: (_ generation: UInt64, _ isWhole: Bool) -> Void
    /// The page could not be read.
    var pageFailed: (_ generation: UInt64) -> Void
    /// Entries are gone from the mailbox.
    var deleted: (_ generation: UInt64, _ numbers: [UInt64]) -> Void
  }

  private let redis: RedisConnection
  private let keys: RedisKeys
  private var command = RedisCommand()
  private var calls = NumberedPlaces<Call>()
  /// Who is told; set once by the lane.
  var answers: Answers?

  init(_ redis: RedisConnection, _ keys: RedisKeys) {
    self.redis = redis
    self.keys = keys
  }

  /// Reads the oldest entries.
  func page(of token: String, generation: UInt64, count: Int) {
    command.begin(SessionScripts.page, keys: 1)
    command.append(keys.mailbox(token))
    command.append(count)
    send(.page(generation: generation, asked: count))
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

  /// Sends what was written to `command`.
  private func send(_ call: Call) {
    let number = calls.add(call)
    if redis.send(command, to: self, token: UInt64(number)) != .accepted { failed(number) }
  }

  func redisReplied(token: UInt64, reply: RedisReplyView) {
    switch calls.take(Int(token)) {
    case .page(let generation, let asked):
      for index in stride(from: 0, to: reply.count - 1, by: 2) {
        guard let revision = reply[index]?.bytes.flatMap(Revision.init(bytes:)) else { continue }
        if let entry = reply[index + 1]?.bytes { answers?.entry(generation, revision, entry) }
      }
      answers?.pageEnded(generation, reply.count / 2 < asked)
    case .delete(let generation, let numbers): answers?.deleted(generation, numbers)
    case nil: break
    }
  }

  func redisFailed(token: UInt64, error: RedisError) { failed(Int(token)) }

  private func failed(_ number: Int) {
    switch calls.take(number) {
    case .page(let generation, _): answers?.pageFailed(generation)
    case .delete(let generation, let numbers): answers?.deleted(generation, numbers)
    case nil: break
    }
  }
}
