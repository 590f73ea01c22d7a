import HTTP
import Notifications
import Redis
@testable import Store
import TestSupport
import Testing
import Worker

@testable import FanOut

/// A lane whose Redis is changed under it.
@Suite struct RedisWatchTests {
  @Test func aLaneIsNotReadyWhileRedisMayThrowItsMailboxesAwayAndItsDevicesStay() async throws {
    try await LaneFixture.with({ $0.store.inspectionMilliseconds = 50 }) { lane in
      try await RedisProbe.with(lane.redis.address) { redis in
        let device = try await lane.connect()
        await lane.eventually("the device is welcomed") { $0.frames("welcome", at: device).count == 1 }
        try await applyRegistrations(redis)
        try await redis.command("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
        await lane.eventually("the lane is not ready, and says why") { $0.health.json.contains("allkeys-lru") && !$0.health.isReady }
        #expect(lane.metric("carillon_redis_suitable") == 0)
        try await redis.command("CONFIG", "SET", "maxmemory-policy", "noeviction")
        await lane.eventually("the lane is ready again") { $0.health.isReady && $0.metric("carillon_redis_suitable") == 1 }
        #expect(await lane.end(of: device) == nil)
      }
    }
  }

  @Test func `a lane is not ready while Redis refuses a command and its devices stay`() async throws {
    try await LaneFixture.with { lane in
      try await RedisProbe.with(lane.redis.address) { redis in
        let device = try await lane.connect()
        await lane.eventually("the device is welcomed") { $0.frames("welcome", at: device).count == 1 }
        try await applyRegistrations(redis)
        try await redis.command("ACL", "SETUSER", "default", "-persist")
        let other = try await lane.connect()
        await lane.eventually("the lane is not ready, and names the command") { $0.health.json.contains("persist") && !$0.health.isReady }
        #expect(await lane.frames("welcome", at: other).isEmpty)
        try await redis.command("ACL", "SETUSER", "default", "+persist")
        await lane.eventually("the lane is ready again") { $0.health.isReady }
        #expect(await lane.end(of: device) == nil)
      }
    }
  }

  /// By such a clock notifications with minutes left would have expired, or those whose end has passed would be sent.
  @Test(arguments: [3_000_000, -3_000_000] as [Int64])
  func `nothing is sent and nothing expires while the machine's clock is far from that of Redis`(ahead: Int64) async throws {
    let offset = ClockShift()
    try await LaneFixture.with({
      $0.store.inspectionMilliseconds = 50
      $0.store.wallClock = { offset.now }
      $0.limits.refreshSeconds = 1
    }) { lane in
      try await RedisProbe.with(lane.redis.address) { redis in
        let token = LaneFixture.token()
        let device = try await lane.connect(token)
        await lane.eventually("the device is welcomed") { $0.frames("welcome", at: device).count == 1 }
        try await applyRegistrations(redis)
        offset.ahead = ahead
        await lane.eventually("the lane is not ready, and names the clock") { lane in
          lane.health.unready.contains { $0.name == "clock" && $0.reason.contains(ahead < 0 ? " s behind that" : " s ahead of that") }
        }
        try await lane.put(
          try LaneFixture.entry(for: token, offset: 1), .init(timestamp: 1, partition: 0, offset: 1), for: token, in: redis)
        await #expect(throws: WebSocketClientError.self, "a device that connects is told to reconnect later") {
          _ = try await lane.connect()
        }
        // It resyncs each second: the rest of the calls are heartbeats.
        let calls = await Self.scriptCalls(redis)
        await lane.eventually("the session has resynced") { _ in await Self.scriptCalls(redis) > calls + 10 }
        #expect(await lane.frames("notify", at: device).isEmpty)
        #expect(await lane.end(of: device) == nil, "the device stays")
        offset.ahead = 0
        await lane.eventually("the device has the notification") { $0.frames("notify", at: device).count == 1 }
        await lane.eventually("the lane is ready again") { $0.health.isReady }
      }
    }
  }

  private static func scriptCalls(_ redis: RedisProbe) async -> Int {
    (try? await redis.calls["evalsha"]) ?? 0
  }

  /// A device's hash is a view of its registration, which its hello brings.
  @Test(arguments: ["key", "u", "r"]) func `a device enters whatever Redis has in the place of its hash`(damage: String) async throws {
    try await LaneFixture.with { lane in
      try await RedisProbe.with(lane.redis.address) { redis in
        let token = LaneFixture.token()
        let device = try await lane.connect(token)
        await lane.eventually("the device is welcomed") { $0.frames("welcome", at: device).count == 1 }
        try await applyRegistrations(redis)
        let key = try await lane.deviceKey(token, in: redis)
        if damage == "key" {
          try await redis.command("DEL", .text(key))
          try await redis.command("SET", .text(key), "x")
        } else {
          try await redis.command("HSET", .text(key), .text(damage), "x")
        }
        let again = try await lane.connect(token)
        await lane.eventually("the device is welcomed again") { $0.frames("welcome", at: again).count == 1 }
      }
    }
  }

  /// Redis has lost the presences, and an older session of the device was the first to write its own again.
  @Test func `a session that an older one displaces in Redis is told to reconnect`() async throws {
    try await LaneFixture.with({ $0.limits.refreshSeconds = 1 }) { lane in
      try await RedisProbe.with(lane.redis.address) { redis in
        let token = LaneFixture.token()
        let device = try await lane.connect(token)
        await lane.eventually("the device is welcomed") { $0.frames("welcome", at: device).count == 1 }
        try await applyRegistrations(redis)
        try await redis.command("HSET", .text(try await lane.deviceKey(token, in: redis)), "p", "another lane")
        await lane.eventually("the session ends") { $0.end(of: device) != nil }
        #expect(await lane.end(of: device)?.code.rawValue == CloseCode.serviceUnavailable.rawValue)
      }
    }
  }

  /// What a device waits for may be gone with what was thrown away; what is left of it is sent.
  @Test func afterAnEvictionEachSessionResyncsWithItsMailbox() async throws {
    try await LaneFixture.with({ $0.store.inspectionMilliseconds = 3_000 }) { lane in
      try await RedisProbe.with(lane.redis.address) { redis in
        let token = LaneFixture.token()
        let device = try await lane.connect(token)
        await lane.eventually("the device is welcomed") { $0.frames("welcome", at: device).count == 1 }
        await lane.eventually("the lane has looked at Redis") { $0.metric("carillon_redis_suitable") == 1 }
        try await applyRegistrations(redis)
        try await lane.put(
          try LaneFixture.entry(for: token, offset: 1), .init(timestamp: 1, partition: 0, offset: 1), for: token, in: redis)
        try await redis.command("SETRANGE", "large", .integer(20 << 20), "x")
        try await redis.command("EXPIRE", "large", 600)
        try await redis.command("CONFIG", "SET", "maxmemory-policy", "volatile-ttl")
        try await redis.command("CONFIG", "SET", "maxmemory", "16mb")
        await lane.eventually("it is thrown away") { _ in await (try? redis.command("EXISTS", "large"))?.integer == 0 }
        try await redis.command("CONFIG", "SET", "maxmemory-policy", "noeviction")
        await lane.eventually("what is left is sent") { $0.frames("notify", at: device).count == 1 }
        await lane.eventually("metrics tell of it") { $0.metric("carillon_redis_evicted_keys") >= 1 }
      }
    }
  }

  /// No transform worker is here to say that it has applied them.
  private func applyRegistrations(_ redis: RedisProbe) async throws {
    let script = "for i = 0, ARGV[2] - 1 do redis.call('HSET', 'k{' .. i .. '}', 'd0', ARGV[1], 'd1', ARGV[1]) end"
    let marker = Marker(offset: 1_000, timestamp: 1, incarnation: 0)
    try await redis.command("EVAL", .text(script), 0, .bytes(marker.bytes), .integer(Int64(StoreConfiguration.standardBuckets)))
  }
}
