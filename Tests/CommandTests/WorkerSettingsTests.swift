import Cryptography
import Extensions
import JSON
import Kafka
import Notifications
import Redis
import TestSupport
import Testing
import Transform

@testable import Command

/// Workers whose settings are not those of the cluster that they join, as processes.
@Suite struct WorkerSettingsTests {
  @Test func `a worker with other buckets or another cluster name ends at its start and names both values`() async throws {
    try await WorkerPair.with { pair in
      for role in ["transform", "fan-out"] {
        let place = [role] + pair.flags + ["--redis", pair.redisAddress] + (role == "fan-out" ? ["--listen", "127.0.0.1:0"] : [])
        let buckets = try await pair.carillon.run(place + ["--buckets", "128"])
        #expect(buckets.status == 2, "it said: \(buckets.errors)")
        #expect(buckets.errors.contains("--buckets 256, and not 128"), "it said: \(buckets.errors)")
        let name = try await pair.carillon.run(place + ["--cluster", "other"])
        #expect(name.status == 2, "it said: \(name.errors)")
        #expect(name.errors.contains("--cluster carillon, and not other"), "it said: \(name.errors)")
      }
      #expect(try await pair.redis.command("HGET", "cluster", "buckets").text == "256")
      #expect(try await pair.redis.command("EXISTS", "k{255}").integer == 1)
    }
  }

  /// What is lost is restored by `carillon rebuild`, and only its settings count.
  @Test func `no worker claims a Redis that has lost everything`() async throws {
    try await WorkerPair.with { pair in
      try await pair.register(String(repeating: "ab", count: 32), user: "ada")
      try await pair.publish([WorkerPair.request("user:ada")])
      let partition = TopicPartition(pair.prefix + "requests", 0)
      try await pair.eventually("the group has committed") {
        try await pair.kafka.admin.committed(group: pair.prefix + "transform", of: [partition])[partition] != nil
      }
      try await pair.redis.command("FLUSHALL")
      let other = try pair.carillon.start(
        ["transform", "--buckets", "128", "--group", pair.prefix + "transform", "--redis", pair.redisAddress, "--admin", "127.0.0.1:0"]
          + pair.flags)
      // It has looked for whose Redis it is.
      try await other.untilErrors(contain: "Redis has lost what it had, though Kafka has committed offsets")
      #expect(try await pair.redis.command("EXISTS", "cluster").integer == 0)
      try await other.stop()
    }
  }

  @Test(.onlyInAll("ClusterReportTests have it"))
  func `a setting that differs between workers is told by status`() async throws {
    try await WorkerPair.with { pair in
      let other = try pair.carillon.start(
        ["transform", "--mailbox-bound", "7", "--group", pair.prefix + "transform", "--redis", pair.redisAddress, "--worker", "other"]
          + pair.flags)
      try await pair.eventually("status names the setting and its values") {
        let status = try await pair.carillon.run(["status", "--redis", pair.redisAddress, "--sample", "0s"] + pair.flags)
        return status.output.contains("mailbox.bound differs between workers") && status.output.contains("7 at other")
      }
      try await other.stop()
    }
  }

  /// A worker that knew another session than its group would remove members that still live, or none.
  @Test(arguments: [([], 20_000), (["--kafka.session.timeout.ms", "45000"], 45_000)])
  func `librdkafka's own session timeout goes before the worker's`(_ flags: [String], _ expected: Int) throws {
    let values = try Typed.values(
      ["transform", "--kafka", "127.0.0.1:9092", "--redis", "127.0.0.1:6379", "--session-timeout", "20s"] + flags)
    let settings = TransformSettings(values, try ClusterPlace(values, client: "test"), worker: "one", extensions: InForce(ExtensionsFile()))
    #expect(settings.sessionMilliseconds == expected)
  }
}
