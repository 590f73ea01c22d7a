import EventLoop
import Redis

/// The calls of a room that wait for their answers, each with what is to be done then. Loop-confined.
final class Calls: RedisReplyHandler {
  /// The answer is valid during the call only.
  typealias Then = (Result<RedisReplyView, StoreError>) -> Void
  private var waiting = SlotTable<Then>()
  /// The call that is written now.
  var command: RedisCommand

  init(reserving capacity: Int = 1024) { command = RedisCommand(reserving: capacity) }

  /// Sends what was written to `command`; a connection that does not take it fails it at once.
  func send(over shard: RedisConnection, _ then: @escaping Then) {
    let number = waiting.add(then)
    let admission = shard.send(command, to: self, tag: UInt64(number))
    if admission != .accepted, let then = waiting.take(number) { then(.failure(StoreError(admission))) }
  }

  func redisReplied(tag: UInt64, reply: RedisReplyView) {
    guard let then = waiting.take(Int(tag)) else { return }
    then(reply.isBucketLost ? .failure(.bucketLost) : .success(reply))
  }

  func redisFailed(tag: UInt64, error: RedisError) { waiting.take(Int(tag))?(.failure(StoreError(error))) }
}

extension StoreError {
  init(_ admission: RedisAdmission) {
    if admission == .full {
      self.init(.overloaded, "too many Redis calls are in flight")
    } else {
      self.init(.unavailable, "there is no connection to Redis at the moment")
    }
  }
}

extension RedisReplyView {
  /// Scripts answer -2, by itself or as the first element, where Redis does not have their bucket.
  var isBucketLost: Bool { (kind == .array ? self[0]?.integer : integer) == -2 }
}

// For cold paths: from a task on the loop.
extension RedisConnection {
  /// Calls a script and answers its reply, copied out.
  func answer(_ script: RedisScript, keys: [RedisArgument], arguments: [RedisArgument]) async throws(StoreError) -> RedisValue {
    let answer: RedisValue
    do throws(RedisError) { answer = try await call(script, keys: keys, arguments: arguments) } catch { throw StoreError(error) }
    if (answer.array?.first ?? answer).integer == -2 { throw .bucketLost }
    return answer
  }

  /// Sends a command and answers the reply, copied out.
  @discardableResult
  func answer(_ arguments: RedisArgument...) async throws(StoreError) -> RedisValue { try await answer(arguments) }

  /// Sends a command and answers the reply, copied out.
  @discardableResult
  func answer(_ arguments: [RedisArgument]) async throws(StoreError) -> RedisValue {
    do throws(RedisError) { return try await command(arguments) } catch { throw StoreError(error) }
  }
}
