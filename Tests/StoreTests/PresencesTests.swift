import EventLoop
import Redis
import TestSupport
import Testing

@testable import Store

/// Where a device is connected, by sessions that follow one another, on a real Redis.
@Suite struct PresencesTests {
  @Test func theCloseOfAnOldSessionLeavesTheNewOneItsPresence() async throws {
    try await withPresences { lane in
      let (old, new) = (Presence(partition: 1, generation: 5), Presence(partition: 2, generation: 6))
      try await lane.enter(old)
      #expect(try await lane.enter(new) == old)
      try await lane.leave(old)
      // A session that repeats its hello would restore it.
      #expect(try await lane.presence() == new, "the device is still where it connected last")
      #expect(try await lane.isPresent(new))
      #expect(try await !lane.isPresent(old))
    }
  }

  @Test func theCloseOfASessionGivesItsPresenceUp() async throws {
    try await withPresences { lane in
      let presence = Presence(partition: 1, generation: 5)
      try await lane.enter(presence)
      try await lane.leave(presence)
      #expect(try await lane.presence() == nil)
    }
  }

  private func withPresences(_ body: @Sendable (PresenceLane) async throws -> Void) async throws {
    try await withRedis { redis in
      try await RedisProbe.with(redis.address) { probe in
        let lane = PresenceLane(probe)
        var failure: (any Error)?
        do {
          var configuration = StoreConfiguration(redis.address, buckets: 1)
          configuration.callDeadlineMilliseconds = hangMilliseconds
          try await lane.connect(configuration)
          try await body(lane)
        } catch { failure = error }
        await lane.close()
        await lane.loop.close()
        if let failure { throw failure }
      }
    }
  }
}

/// The sessions of one registered device.
private actor PresenceLane: LoopActor {
  nonisolated let loop = EventLoop(name: "presences")
  private let probe: RedisProbe
  private var shards: Shards?
  private var presences: Presences?
  private static let (token, digest) = ("ab", UInt64(77))

  init(_ probe: RedisProbe) { self.probe = probe }

  func connect(_ configuration: StoreConfiguration) async throws {
    let shards = Shards(on: loop, configuration, clientName: "test")
    self.shards = shards
    presences = Presences(shards, keptMilliseconds: 60_000)
    shards.start()
    try await shards.waitUntilUp(withinMilliseconds: hangMilliseconds)
    let stamp = withUnsafeBytes(of: Self.digest.bigEndian, Array.init) + [UInt8](repeating: 0, count: 12)
    try await probe.command("HSET", .text(shards.keys.markers(0)), "i", "1")
    try await probe.command(
      "HSET", .text(shards.keys.device(Self.token)), "u", .bytes(Owner(user: 0, since: 1, application: 2).bytes), "r", .bytes(stamp))
    // Redis gets the script with its first call, which may be overtaken; later calls of a connection are answered in their order.
    let first = Presence(partition: 0, generation: 1)
    try await enter(first)
    try await leave(first)
    try await requireEventually("the first presence has gone") { try await presence() == nil }
  }

  func close() { shards?.close() }

  /// A session begins: the presence before.
  @discardableResult
  func enter(_ presence: Presence) async throws -> Presence? {
    let welcome = try #require(presences)
    guard case .present(let standing) = try await welcome.enter(Self.token, presence, digest: Self.digest) else {
      Issue.record("the device is registered")
      return nil
    }
    return standing.former
  }

  /// A session ends; what is asked next on this connection is answered after that.
  func leave(_ presence: Presence) async throws {
    presences?.leave(Self.token, presence)
    try await shards?.common.answer("PING")
  }

  func isPresent(_ presence: Presence) async throws -> Bool {
    guard case .present = try await presences?.refresh(Self.token, presence) else { return false }
    return true
  }

  /// What stands for the device.
  func presence() async throws -> Presence? {
    guard let shards else { return nil }
    return try await probe.command("HGET", .text(shards.keys.device(Self.token)), "p").bytes.flatMap { Presence($0) }
  }
}
