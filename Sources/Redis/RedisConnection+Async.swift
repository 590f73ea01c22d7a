import EventLoop

/// A call of a task: its handler, and its continuation.
private final class AsyncCall: RedisReplyHandler {
  private var continuation: CheckedContinuation<Result<RedisValue, RedisError>, Never>?

  init(_ continuation: CheckedContinuation<Result<RedisValue, RedisError>, Never>) { self.continuation = continuation }

  func redisReplied(tag: UInt64, reply: RedisReplyView) { finish(.success(reply.value)) }

  func redisFailed(tag: UInt64, error: RedisError) { finish(.failure(error)) }

  func finish(_ result: Result<RedisValue, RedisError>) {
    continuation?.resume(returning: result)
    continuation = nil
  }
}

// For cold paths, from a task on the loop. A cancelled task still waits for the reply, at most until the deadline of calls.
extension RedisConnection {
  /// Sends a command and returns a copy of the reply.
  ///
  /// - Throws: an error reply, `notConnected`, `full`, or why no reply came.
  func command(_ arguments: RedisArgument...) async throws(RedisError) -> RedisValue { try await command(arguments) }

  /// Sends a command and returns a copy of the reply. `arguments` begins with the command's name.
  public func command(_ arguments: [RedisArgument]) async throws(RedisError) -> RedisValue {
    precondition(!arguments.isEmpty, "a command has a name")
    return try await reply {
      var command = RedisCommand(reserving: 256)
      command.begin()
      command.append(all: arguments)
      return self.send(command, to: $0)
    }
  }

  /// Calls a script and returns a copy of its reply.
  public func call(_ script: RedisScript, keys: [RedisArgument], arguments: [RedisArgument] = []) async throws(RedisError) -> RedisValue {
    try await reply {
      var command = RedisCommand(reserving: 256)
      command.begin(script, keys: keys.count)
      command.append(all: keys + arguments)
      return self.send(command, to: $0)
    }
  }

  private func reply(to send: (AsyncCall) -> RedisAdmission) async throws(RedisError) -> RedisValue {
    loop.preconditionOnLoop()
    let result = await withCheckedContinuation { continuation in
      let call = AsyncCall(continuation)
      switch send(call) {
      case .accepted: break
      case .full: call.finish(.failure(RedisError(.full, "too many Redis calls are in flight; wait for replies")))
      case .down: call.finish(.failure(RedisError(.notConnected, "there is no connection to \(configuration.address) at the moment")))
      }
    }
    return try result.get()
  }
}
