import EventLoop
import Kafka
import Redis
import Store
import TestSupport
import Testing
import Worker

@testable import Operations

/// What is read of a Redis, and how fast.
@Suite struct ClusterReaderTests {
  /// Looks once, over the embedded Kafka or a real one, and a Redis.
  /// Looks until the sample is as wanted: on a machine that stands still for seconds everything counts as away.
  private func look(
    _ redis: RedisAddress, _ kafka: KafkaFixture, countMilliseconds: Int, until isAsWanted: (ClusterSample) -> Bool
  ) async throws -> ClusterSample {
    var sample: ClusterSample?
    try await requireEventually("the sample is as wanted: \(sample.map { "\($0)" } ?? "")") {
      let next = try await look(redis, kafka, countMilliseconds: countMilliseconds)
      sample = next
      return isAsWanted(next)
    }
    return try #require(sample)
  }

  private func look(_ redis: RedisAddress, _ kafka: KafkaFixture, _ topics: Topics? = nil, countMilliseconds: Int) async throws
    -> ClusterSample
  {
    let loop = EventLoop(name: "status-test")
    let reader = try ClusterReader(
      on: loop, kafka.configuration, topics ?? Topics(prefix: KafkaFixture.unique("status") + "."), group: "none",
      StoreConfiguration(redis, buckets: 1), countMilliseconds: countMilliseconds)
    let sample = await reader.look()
    await reader.close()
    await loop.close()
    return sample
  }

  private func fill(_ redis: RedisProbe, devices: Int) async throws {
    let script = """
      for i = 1, tonumber(ARGV[1]) do
        local token = string.format('%064x', i)
        redis.call('HSET', 'd{0}' .. token, 'u', string.rep('a', 24), 'p', string.rep('b', 12))
        redis.call('HSET', 'm{0}' .. token, string.rep('c', 20), 'x', string.rep('d', 20), 'y')
      end
      """
    try await redis.command("EVAL", .text(script), "0", .integer(Int64(devices)))
  }

  @Test func devicesAndMailboxesAreCountedNoFasterThanAllowed() async throws {
    try await KafkaFixture.with { kafka in
      try await withRedis { server in
        try await RedisProbe.with(server.address) { redis in
          try await fill(redis, devices: 20_000)
          // A machine that stands still counts nothing in that time.
          await eventually("enough is counted") {
            try await redis.command("CONFIG", "RESETSTAT")
            let sample = try await look(server.address, kafka, countMilliseconds: 1_000)
            let scans = try await redis.calls["scan"] ?? 0
            #expect(scans <= 101, "100 a second")
            guard let found = sample.redis?.value?.population?.value, scans >= 20 else { return false }
            // Some four standard deviations of a sample of 2,000 keys.
            #expect(!found.isExact && abs(found.devices - 20_000) <= 2_000 && abs(found.entries - 40_000) <= 4_000, "\(found)")
            return true
          }
        }
      }
    }
  }

  @Test func aSlowKafkaIsToldWithinSecondsWithoutWhatItHasNotSaid() async throws {
    try await KafkaFixture.with(embeddedOnly: true) { kafka in
      try await withRedis { server in
        let topics = Topics(prefix: "slow.")
        for topic in topics.all { try kafka.embedded?.createTopic(topic, partitions: 1) }
        for topic in topics.all { try await kafka.publish([TestRecord("a", partition: 0)], to: topic) }
        try kafka.embedded?.setRoundTrip(milliseconds: 900)
        // Without a deadline all is known in the end. A machine that stands still looks like a Kafka that is away.
        await eventually("the brokers are known, and not the lag") {
          let found = try await look(server.address, kafka, topics, countMilliseconds: 0).kafka.value
          return found?.cluster.brokers.isEmpty == false && found?.lag.reason != nil
        }
      }
    }
  }

  @Test func whatSomebodyElseHasPutUnderAKeyHidesNothingElse() async throws {
    try await KafkaFixture.with { kafka in
      try await withRedis { server in
        try await RedisProbe.with(server.address) { redis in
          for key in ["workers", "lanes", "cluster"] as [RedisArgument] { try await redis.command("SET", key, "x") }
          func isWhole(_ sample: ClusterSample) -> Bool {
            sample.redis?.value.map { $0.population?.value != nil && $0.identity.reason?.contains("WRONGTYPE") == true } == true
          }
          let found = try #require(try await look(server.address, kafka, countMilliseconds: 20_000, until: isWhole).redis?.value)
          #expect(found.server.version != nil && found.population?.value != nil)
          #expect(found.identity.reason?.contains("WRONGTYPE") == true && found.workers.reason != nil && found.lanes.reason != nil)
          try await redis.command("DEL", "workers")
          let sample = try await look(server.address, kafka, countMilliseconds: 0) { $0.redis?.value?.workers.value != nil }
          let rest = try #require(sample.redis?.value)
          #expect(rest.workers.value?.isEmpty == true && rest.lanes.reason != nil)
        }
      }
    }
  }

  @Test func aSmallStoreIsCountedExactlyAndAnEmptyOneIsToldAsEmpty() async throws {
    try await KafkaFixture.with { kafka in
      try await withRedis { server in
        try await RedisProbe.with(server.address) { redis in
          func isExact(_ sample: ClusterSample) -> Bool {
            sample.redis?.value.map { $0.population?.value?.isExact == true && $0.workers.value != nil && $0.identity.value != nil } == true
          }
          let empty = try await look(server.address, kafka, countMilliseconds: 20_000, until: isExact)
          #expect(empty.redis?.value?.population?.value == Population.Counts())
          #expect(empty.redis?.value?.workers.value?.isEmpty == true && empty.redis?.value?.identity.value == .some(nil))
          try await fill(redis, devices: 20)
          let counted = try await look(server.address, kafka, countMilliseconds: 20_000, until: isExact)
          let found = try #require(counted.redis?.value?.population?.value)
          #expect(found.isExact && found.devices == 20 && found.connected == 20 && found.mailboxes == 20 && found.entries == 40)
          let unsampled = try await look(server.address, kafka, countMilliseconds: 0) { $0.redis?.value != nil }
          #expect(unsampled.redis?.value != nil && unsampled.redis?.value?.population == nil)
        }
      }
    }
  }
}
