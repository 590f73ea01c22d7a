import EventLoop
import Redis
import Store
import TestSupport
import Testing

/// What real servers report of themselves, and what is found wrong with them.
@Suite struct ServerStateTests {
  private actor Reader: LoopActor {
    nonisolated let loop = EventLoop(name: "state")

    func state(of address: RedisAddress) async throws -> ServerState {
      var configuration = StoreConfiguration(address, buckets: 4)
      configuration.callDeadlineMilliseconds = hangMilliseconds
      let shards = Shards(on: loop, configuration, clientName: "test")
      defer { shards.close() }
      shards.start()
      try await shards.waitUntilUp(withinMilliseconds: hangMilliseconds)
      return try await shards.serverState()
    }
  }

  private func state(of address: RedisAddress) async throws -> ServerState {
    let reader = Reader()
    defer { Task.detached { await reader.loop.close() } }
    return try await reader.state(of: address)
  }

  @Test func aServerOfOursIsAcceptable() async throws {
    try await withRedis { server in
      let state = try await state(of: server.address)
      #expect(state.findings.isEmpty && state.objection == nil)
      #expect(state.policy == "noeviction")
      #expect(state.version?.contains(".") == true)
      #expect(state.runIdentifier?.utf8.count == 40)
    }
  }

  @Test func aServerTellsItsMemoryRoleAndPersistence() async throws {
    let settings = ["--maxmemory", "3mb", "--maxmemory-policy", "allkeys-random", "--appendonly", "yes", "--appendfsync", "always"]
    try await withRedis(settings: settings) { server in
      let empty = try await state(of: server.address)
      #expect(empty.maximumMemory == 3 << 20)
      #expect(try #require(empty.usedMemory) > 500_000)
      #expect(empty.evictedKeys == 0)
      #expect(empty.isPrimary == true && empty.replicas == 0)
      #expect(empty.appendsWrites == true && empty.synchronization == "always" && empty.isSaved == true)
      try await RedisProbe.with(server.address) { probe in
        for number in 0..<40 { _ = try await probe.command("SET", .text("key-\(number)"), .bytes([UInt8](repeating: 1, count: 100_000))) }
      }
      let full = try await state(of: server.address)
      #expect(try #require(full.evictedKeys) > 0)
      #expect(try #require(full.usedMemory) > #require(empty.usedMemory))
    }
  }

  @Test func evictionIsAnErrorAndSmallListpacksAWarning() async throws {
    try await withRedis(settings: ["--maxmemory-policy", "allkeys-lru", "--hash-max-listpack-value", "64"]) { server in
      let state = try await state(of: server.address)
      #expect(state.texts(.error).count == 1 && state.remarks.count == 1 && state.texts(.warning) == state.remarks)
      #expect(state.objection?.contains("noeviction") == true)
    }
  }

  @Test func `a server without a bound for its memory is warned of`() async throws {
    try await withRedis(settings: ["--maxmemory", "0"]) { server in
      let state = try await state(of: server.address)
      #expect(state.objection == nil && state.texts(.warning) == state.remarks && state.remarks.count == 1)
      #expect(state.remarks.first?.contains("there is no maxmemory") == true)
    }
  }

  @Test func aReplicaIsWaitedFor() async throws {
    try await withRedis(settings: ["--replicaof", "127.0.0.1", "1"]) { server in
      let state = try await state(of: server.address)
      #expect(state.texts(.error).isEmpty && state.texts(.passing).first?.contains("replica") == true)
      #expect(state.isPrimary == false)
    }
  }

  @Test func aServerThatForbidsToBeAskedIsNoted() async throws {
    let settings = ["--user", "carillon", "on", ">pass", "~*", "+@all", "-config", "-info"]
    try await withRedis(settings: settings) { server in
      var address = server.address
      (address.user, address.password) = ("carillon", "pass")
      let state = try await state(of: address)
      #expect(state.errors.isEmpty && state.texts(.note).count == 3 && state.remarks.count == 3)
      #expect(state.usedMemory == nil && state.evictedKeys == nil && state.isPrimary == nil && state.appendsWrites == nil)
    }
  }
}
