import EventLoop
import Redis
import TestSupport
import Testing

@testable import Store

/// The end of a rebuild, on a real Redis.
struct RebuildGuardTests {
  @Test(arguments: [(nil, false), (0, false), (0, true), (2, true)] as [(Int?, Bool)])
  func `a rebuild gives no markers to a bucket that was emptied, whether or not another rebuild has begun`(
    lost: Int?, isTaken: Bool
  ) async throws {
    try await withRedis { redis in
      try await RedisProbe.with(redis.address) { probe in
        let lane = RebuildGuardLane(redis.address)
        var failure: (any Error)?
        do {
          let error = try await lane.rebuild { keys in
            guard let lost else { return }
            try await probe.command("DEL", .text(keys.rebuilt(lost)))
            if isTaken { try await probe.command("SET", .text(keys.rebuilt(lost)), "other") }
          }
          #expect(error?.code == (lost == nil ? nil : .bucketLost))
          for bucket in 0..<3 {
            let isGiven = bucket < lost ?? .max
            #expect(try await probe.command("HLEN", .text(lane.keys.markers(bucket))).integer == (isGiven ? 2 : 0))
            let guarded = try await probe.command("GET", .text(lane.keys.rebuilt(bucket))).text
            #expect(guarded == (isGiven || bucket == lost && !isTaken ? nil : bucket == lost ? "other" : "test"))
          }
          #expect(try await probe.command("EXISTS", .text(Keys.rebuild)).integer == (lost == nil ? 0 : 1))
        } catch { failure = error }
        await lane.close()
        await lane.loop.close()
        if let failure { throw failure }
      }
    }
  }
}

private actor RebuildGuardLane: LoopActor {
  nonisolated let loop = EventLoop(name: "rebuild")
  nonisolated let keys = Keys(buckets: 3)
  private let configuration: StoreConfiguration
  private var shards: Shards?

  init(_ address: RedisAddress) {
    var configuration = StoreConfiguration(address, buckets: 3)
    configuration.callDeadlineMilliseconds = hangMilliseconds
    self.configuration = configuration
  }

  /// Begins a rebuild and ends it. Returns why it could not end.
  func rebuild(_ meanwhile: @Sendable (Keys) async throws -> Void) async throws -> StoreError? {
    let shards = Shards(on: loop, configuration, clientName: "test", isRebuilding: true)
    self.shards = shards
    shards.start()
    try await shards.waitUntilUp(withinMilliseconds: hangMilliseconds)
    let rebuild = Rebuild(shards, name: "test", lockMilliseconds: hangMilliseconds)
    #expect(try await rebuild.lock() == nil)
    try await rebuild.begin()
    try await meanwhile(keys)
    do {
      try await rebuild.end([(.requests(0), .beginning)])
      return nil
    } catch { return error }
  }

  func close() { shards?.close() }
}
