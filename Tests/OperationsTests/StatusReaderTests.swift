import EventLoop
import Kafka
import Redis
import Store
import TestSupport
import Testing
import Worker

@testable import Operations

/// What is read of a Redis, and how fast.
@Suite struct StatusReaderTests {
  /// Looks once, over the embedded Kafka or a real one, and a Redis.
  /// Looks until the sample is as wanted, a few times: on a machine that stands still for seconds everything counts as away.
  private func look(
    _ redis: RedisAddress, _ kafka: KafkaFixture, sampleMilliseconds: Int, until isAsWanted: (StatusSample) -> Bool
  ) async throws -> StatusSample {
    var sample = try await look(redis, kafka, sampleMilliseconds: sampleMilliseconds)
    for _ in 0..<5 where !isAsWanted(sample) { sample = try await look(redis, kafka, sampleMilliseconds: sampleMilliseconds) }
    return sample
  }

  private func look(_ redis: RedisAddress, _ kafka: KafkaFixture, _ topics: Topics? = nil, sampleMilliseconds: Int) async throws
    -> StatusSample
  {
    let loop = EventLoop(name: "status-test")
    let reader = try StatusReader(
      on: loop, kafka.configuration, topics ?? Topics(prefix: KafkaFixture.unique("status") + "."), group: "none",
      StoreConfiguration(redis, buckets: 1), sampleMilliseconds: sampleMilliseconds)
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

  @Test func devicesAndMailboxesAreReadNoFasterThanAllowed() async throws {
    try await KafkaFixture.with { kafka in
      try await withRedis { server in
        try await RedisProbe.with(server.address) { redis in
          try await fill(redis, devices: 20_000)
          var hasRead = false
          // A machine that stands still reads nothing in that time.
          for _ in 0..<10 where !hasRead {
            try await redis.command("CONFIG", "RESETSTAT")
            let start = ContinuousClock.now
            let sample = try await look(server.address, kafka, sampleMilliseconds: 3_000)
            let seconds = (ContinuousClock.now - start) / .seconds(1)
            let text = try #require(try await redis.command("INFO", "commandstats").text)
            func calls(_ name: String) -> Double {
              text.matches(of: /cmdstat_([a-z]+)[^:]*:calls=(\d+)/).filter { $0.1 == name }.reduce(0) { $0 + (Double($1.2) ?? 0) }
            }
            // A script is counted, and what it calls like everything else.
            let sampled = ["scan", "hmget", "eval", "evalsha", "hlen", "hkeys", "dbsize"].map(calls).reduce(0, +)
            #expect(sampled <= 200 * min(seconds, 3) + 10, "\(sampled) commands in \(seconds) s")
            guard let found = sample.redis.value?.population?.value, found.devicesRead >= 20, found.mailboxesRead >= 20 else { continue }
            hasRead = true
            #expect(!found.isExact && sampled >= 60)
            // Four standard deviations.
            #expect(abs(found.devices.value - 20_000) <= 2 * found.devices.margin, "\(found)")
            #expect(abs(found.notifications.value - 40_000) <= 2 * found.notifications.margin, "\(found)")
          }
          #expect(hasRead, "a test that reads nothing proves nothing")
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
        var sample: StatusSample?
        var took = Duration.zero
        // A machine that stands still looks like a Kafka that is away.
        func isAsWanted(_ sample: StatusSample?) -> Bool { sample?.kafka.value?.lag.reason?.contains("8 s") == true }
        for _ in 0..<10 where !isAsWanted(sample) || took >= .seconds(18) {
          let start = ContinuousClock.now
          sample = try await look(server.address, kafka, topics, sampleMilliseconds: 0)
          took = ContinuousClock.now - start
        }
        #expect(took < .seconds(18), "the deadline, and the end of what is under way")
        let found = try #require(sample?.kafka.value)
        #expect(!found.cluster.brokers.isEmpty && isAsWanted(sample), "\(found.lag)")
      }
    }
  }

  @Test func whatSomebodyElseHasPutUnderAKeyHidesNothingElse() async throws {
    try await KafkaFixture.with { kafka in
      try await withRedis { server in
        try await RedisProbe.with(server.address) { redis in
          for key in ["workers", "lanes", "cluster"] as [RedisArgument] { try await redis.command("SET", key, "x") }
          func isWhole(_ sample: StatusSample) -> Bool {
            sample.redis.value.map { $0.population?.value != nil && $0.identity.reason?.contains("WRONGTYPE") == true } == true
          }
          let found = try #require(try await look(server.address, kafka, sampleMilliseconds: 20_000, until: isWhole).redis.value)
          #expect(found.server.version != nil && found.population?.value != nil)
          #expect(found.identity.reason?.contains("WRONGTYPE") == true && found.workers.reason != nil && found.lanes.reason != nil)
          try await redis.command("DEL", "workers")
          let sample = try await look(server.address, kafka, sampleMilliseconds: 0) { $0.redis.value?.workers.value != nil }
          let rest = try #require(sample.redis.value)
          #expect(rest.workers.value?.isEmpty == true && rest.lanes.reason != nil)
        }
      }
    }
  }

  @Test func aSmallStoreIsCountedExactlyAndAnEmptyOneIsToldAsEmpty() async throws {
    try await KafkaFixture.with { kafka in
      try await withRedis { server in
        try await RedisProbe.with(server.address) { redis in
          func isExact(_ sample: StatusSample) -> Bool {
            sample.redis.value.map { $0.population?.value?.isExact == true && $0.workers.value != nil && $0.identity.value != nil } == true
          }
          let empty = try await look(server.address, kafka, sampleMilliseconds: 20_000, until: isExact)
          #expect(empty.redis.value?.population?.value?.devices == .counted(0))
          #expect(empty.redis.value?.workers.value?.isEmpty == true && empty.redis.value?.identity.value == .some(nil))
          try await fill(redis, devices: 20)
          let counted = try await look(server.address, kafka, sampleMilliseconds: 20_000, until: isExact)
          let found = try #require(counted.redis.value?.population?.value)
          #expect(found.isExact && found.devices.value == 20 && found.connected.value == 20)
          #expect(found.mailboxes.value == 20 && found.notifications.value == 40)
          let unsampled = try await look(server.address, kafka, sampleMilliseconds: 0) { $0.redis.value != nil }
          #expect(unsampled.redis.value != nil && unsampled.redis.value?.population == nil)
        }
      }
    }
  }
}
