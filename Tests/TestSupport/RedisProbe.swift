public import EventLoop
public import Redis

/// Commands to a Redis, for tests that look into it, or put there what nobody of ours has put.
public actor RedisProbe: LoopActor {
  /// The loop of its connection.
  public nonisolated let loop = EventLoop(name: "redis-probe")
  private var connection: RedisConnection?

  /// Gives `body` a connection to a server, and closes it afterwards.
  public static func with<R: Sendable>(_ address: RedisAddress, _ body: (RedisProbe) async throws -> R) async throws -> R {
    let probe = RedisProbe()
    do {
      try await probe.connect(address)
      let result = try await body(probe)
      await probe.close()
      await probe.loop.close()
      return result
    } catch {
      await probe.close()
      await probe.loop.close()
      throw error
    }
  }

  private func connect(_ address: RedisAddress) async throws {
    let connection = RedisConnection(on: loop, RedisConfiguration(address, clientName: "test", callDeadlineMilliseconds: hangMilliseconds))
    self.connection = connection
    connection.start()
    try await connection.waitUntilUp(withinMilliseconds: hangMilliseconds)
  }

  /// How often Redis was asked for each command since it started, or since `CONFIG RESETSTAT`.
  public var calls: [String: Int] {
    get async throws { try await command("INFO", "commandstats").calls }
  }

  private func close() { connection?.close() }

  /// Sends a command and answers the reply.
  @discardableResult
  public func command(_ arguments: RedisArgument...) async throws -> RedisValue { try await send(arguments) }

  /// The same of words that a test puts together.
  @discardableResult
  public func send(_ arguments: [RedisArgument]) async throws -> RedisValue {
    guard let connection else { return .null }
    return try await connection.command(arguments)
  }
}

extension RedisValue {
  /// The calls of each command, in the answer to `INFO commandstats`; a subcommand is named as in `script|load`.
  public var calls: [String: Int] {
    var calls: [String: Int] = [:]
    for line in (text ?? "").split(whereSeparator: \.isNewline) {
      guard let match = line.firstMatch(of: /^cmdstat_([^:]+):calls=(\d+)/) else { continue }
      calls[String(match.1)] = Int(match.2)
    }
    return calls
  }
}
