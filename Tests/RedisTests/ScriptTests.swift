import Redis
import TestSupport
import Testing

@Suite struct ScriptTests {
  static let add = RedisScript("return redis.call('INCRBY', KEYS[1], ARGV[1])")

  @Test func aScriptIsNamedAsRedisNamesIt() async throws {
    try await withRedis { server in
      try await withClient(RedisConfiguration(server.address).patient) { client in
        try await client.open()
        for length in [0, 1, 54, 55, 56, 57, 63, 64, 65, 119, 120, 1000] {
          let source = "return 1 --" + String(repeating: "é", count: length)
          #expect(try await client.command("SCRIPT", "LOAD", .text(source)).text == RedisScript(source).sha1)
        }
      }
    }
  }

  @Test func theScriptsOfTheConfigurationAreLoadedWhenItIsUp() async throws {
    try await withRedis { server in
      try await withClient(RedisConfiguration(server.address, scripts: [Self.add]).patient) { client in
        try await client.open()
        #expect(try await client.command("SCRIPT", "EXISTS", .text(Self.add.sha1)) == .array([.integer(1)]))
      }
    }
  }

  @Test func aScriptWithAnErrorKeepsTheConnectionDownAndIsNamed() async throws {
    try await withRedis { server in
      try await withClient(RedisConfiguration(server.address, scripts: [RedisScript("retrun 1")]).patient) { client in
        let error = await #expect(throws: RedisError.self) { try await client.open() }
        #expect(error?.code == .rejected)
        #expect(error?.message.contains("script") == true)
      }
    }
  }

  @Test func aForgottenScriptIsLoadedOnceForAllCallsInFlight() async throws {
    try await withRedis { server in
      try await withClient(RedisConfiguration(server.address).patient) { client in
        try await client.open()
        // The flush stands between the calls of one pipeline, so the first are answered and the others are not.
        let first = await client.send(0..<5000) { command, tag in
          if tag == 2000 {
            command.begin("SCRIPT")
            command.append("FLUSH")
          } else {
            command.begin(Self.add, keys: 1)
            command.append("n")
            command.append(tag)
          }
        }
        #expect(first.allSatisfy { $0 == .accepted })
        let outcomes = await client.outcomes(of: 5000)
        #expect(outcomes.count == 5000)
        #expect(outcomes.values.allSatisfy { $0.count == 1 })
        #expect(outcomes.values.allSatisfy { success($0.first) != nil })
        // Each was executed exactly once.
        #expect(try await client.command("GET", "n").integer == (0..<5000).reduce(0, +) - 2000)
        // Once for the calls before the flush (it was not loaded yet), once after it.
        let loads = try await client.command("INFO", "commandstats").calls["script|load"] ?? 0
        #expect((1...2).contains(loads), "\(loads)")
      }
    }
  }

  @Test func afterAFlushByAnotherClientCallsGoOn() async throws {
    try await withRedis { server in
      try await withClient(RedisConfiguration(server.address, scripts: [Self.add]).patient) { client in
        try await client.open()
        for round in 1...5 {
          _ = try await client.command("SCRIPT", "FLUSH")
          #expect(try await client.call(Self.add, ["n"], [2]) == .integer(Int64(round) * 2))
        }
      }
    }
  }

  @Test func aScriptThatCannotBeLoadedFailsItsCallsOnce() async throws {
    try await withRedis { server in
      try await withClient(RedisConfiguration(server.address).patient) { client in
        try await client.open()
        let broken = RedisScript("retrun 1")
        _ = await client.send(0..<100) { command, _ in command.begin(broken, keys: 0) }
        let outcomes = await client.outcomes(of: 100)
        #expect(outcomes.count == 100)
        #expect(outcomes.values.allSatisfy { $0.count == 1 && failure($0.first)?.code == .noScript })
      }
    }
  }
}
