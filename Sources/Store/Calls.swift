import EventLoop
import Redis

/// The unanswered calls of one part of the store, each with its callback.
final class Calls: RedisReplyHandler {
  /// Gets the reply, which is valid only during the call.
  typealias Then = (Result<RedisReplyView, StoreError>) -> Void
  private var waiting = SlotTable<Then>()
  /// The call that is being written.
  var command = RedisCommand(reserving: 1024)

  /// Sends what was written to `command`. If the connection does not accept it, `then` gets the failure at once.
  func send(over shard: RedisConnection, _ then: @escaping Then) {
    let number = waiting.add(then)
    let admission = shard.send(command, to: self, tag: UInt64(number))
    if admission != .accepted, let then = waiting.take(number) { then(.failure(StoreError(admission))) }
  }

  /// Sends what was written to `command`. `then` gets the error, if there is one.
  func sendWrite(over shard: RedisConnection, _ then: @escaping (StoreError?) -> Void) {
    send(over: shard) { answer in
      if case .failure(let error) = answer { then(error) } else { then(nil) }
    }
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
  /// Scripts answer -2, alone or as the first element, if Redis does not have the bucket.
  var isBucketLost: Bool { (kind == .array ? self[0]?.integer : integer) == -2 }
}

// For cold paths; call these from a task on the loop.
extension RedisConnection {
  /// Calls a script and answers a copy of its reply.
  func answer(_ script: RedisScript, keys: [RedisArgument], arguments: [RedisArgument]) async throws(StoreError) -> RedisValue {
    let answer: RedisValue
    do throws(RedisError) { answer = try await call(script, keys: keys, arguments: arguments) } catch { throw StoreError(error) }
    if (answer.array?.first ?? answer).integer == -2 { throw .bucketLost }
    return answer
  }

  /// Sends a command and answers a copy of the reply.
  @discardableResult
  func answer(_ arguments: RedisArgument...) async throws(StoreError) -> RedisValue { try await answer(arguments) }

  /// Sends a command and answers a copy of the reply.
  @discardableResult
  func answer(_ arguments: [RedisArgument]) async throws(StoreError) -> RedisValue {
    do throws(RedisError) { return try await command(arguments) } catch { throw StoreError(error) }
  }
}
