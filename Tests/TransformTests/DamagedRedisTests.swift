import Kafka
import Notifications
import Redis
import TestSupport
import Testing
import Worker

@testable import Store
@testable import Transform

/// Values in Redis that the lane depends on and cannot read: each is mended, or told by its key, and stops no partition that it does not concern.
@Suite struct DamagedRedisTests {
  /// What somebody else may have put in the place of a marker.
  private static let damages: [[UInt8]] = [
    Array("x".utf8), [], Array("12345".utf8), Marker(offset: -1, timestamp: 1).bytes, Marker(offset: .min, timestamp: 0).bytes,
    Marker(offset: .max, timestamp: 1).bytes, Marker(offset: 1, timestamp: -7).bytes,
    Marker(offset: 1, timestamp: 1, incarnation: .max).bytes, Marker(offset: 0, timestamp: -1).bytes + [0],
  ]

  private static func marker(_ field: String, _ lane: TransformFixture, bucket: Int = 0) async throws -> Marker? {
    let bytes = try await lane.probe.command("HGET", .text(TransformFixture.keys.markers(bucket)), .text(field)).bytes
    return bytes.flatMap { $0.withUnsafeBytes { Marker($0) } }
  }

  @Test(arguments: damages)
  func `a marker that cannot be read is mended while the lane runs`(damage: [UInt8]) async throws {
    try await TransformFixture.with(partitions: 2) { lane in
      let token = TransformFixture.tokens(in: [(0, 1)])[0]
      try await lane.register([token], for: "ada")
      try await lane.request("device:\(token)", payload: #"{"aps":{"alert":"1"}}"#, count: 2)
      await lane.eventually("they are committed") { try await lane.committed(lane.topics.requests) == 2 }
      try await lane.probe.command("HSET", .text(TransformFixture.keys.markers(0)), "q0", .bytes(damage))
      for partition in [0, 1] as [Int32] {
        try await lane.request("device:\(token)", payload: #"{"aps":{"alert":"2"}}"#, count: 3, partition: partition)
      }
      await lane.eventually("both partitions flow") { try await lane.waiting(token) == 8 }
      await lane.eventually("the marker is mended") { try await Self.marker("q0", lane)?.offset == 5 }
      await lane.eventually("the lane is ready") { lane.health.isReady }
      #expect(lane.count(.deadLettered) == 0)
    }
  }

  @Test(arguments: ["q0", "d0"], [damages[0], damages[3], damages[5]])
  func `a marker that cannot be read is mended at the start`(field: String, damage: [UInt8]) async throws {
    try await TransformFixture.with(
      before: { lane in
        for bucket in 0..<TransformFixture.buckets {
          try await lane.probe.command("HSET", .text(TransformFixture.keys.markers(bucket)), "i", "number")
        }
        try await lane.probe.command("HSET", .text(TransformFixture.keys.markers(1)), .text(field), .bytes(damage))
      }, partitions: 2
    ) { lane in
      let token = TransformFixture.tokens(in: [(0, 1)])[0]
      try await lane.register([token], for: "ada")
      try await lane.request("device:\(token)", payload: #"{"aps":{"alert":"1"}}"#, partition: 0)
      try await lane.request("device:\(token)", payload: #"{"aps":{"alert":"1"}}"#, partition: 1)
      await lane.eventually("both partitions flow") { try await lane.waiting(token) == 2 }
      await lane.eventually("the marker is mended") { try await Self.marker(field, lane, bucket: 1)?.offset == 1 }
    }
  }

  @Test func `markers of another type are a lost bucket that is told by its key`() async throws {
    try await TransformFixture.with { lane in
      let key = TransformFixture.keys.markers(2)
      try await lane.request("device:\(TransformFixture.tokens(in: [(0, 1)])[0])")
      await lane.eventually("it is committed") { try await lane.committed(lane.topics.requests) == 1 }
      // At no moment is the key missing, which would be another condition.
      try await lane.probe.command("COPY", .text(key), "lost")
      try await lane.probe.command("SET", .text(key), "x")
      try await lane.request("device:\(TransformFixture.tokens(in: [(2, 1)])[0])")
      await lane.eventually("the lane is not ready and names the key") { !lane.health.isReady && lane.health.json.contains(key) }
      try await lane.probe.command("RENAME", "lost", .text(key))
      await lane.eventually("it goes on") { lane.health.isReady && lane.count(.unregistered) >= 2 }
    }
  }

  private static let counts: [[RedisArgument]] = [
    ["SET", "tries", "x"], ["HSET", "tries", "q0", "x"], ["HSET", "tries", "q0", "0 99999999999999999999"],
    ["HSET", "tries", "q0 group", "0 99999999999999999999 other"], ["HSET", "tries", "q0 group", "99999999999999999999 1 other"],
    ["HSET", "tries", "q0 group", "9223372036854775807 9223372036854775807 other"],
    ["HSET", "tries", "q0 group", "0 1 other", "q0 ended 0", "x"],
    ["HSET", "tries", "q0 ended 99999999999999999999", "99999999999999999999"],
  ]

  @Test(arguments: counts.indices)
  func `counts of tries that cannot be read stop no partition`(number: Int) async throws {
    try await TransformFixture.with(
      before: { lane in
        let words = Self.counts[number]
        if words.count == 3 {
          try await lane.probe.command(words[0], words[1], words[2])
        } else if words.count == 4 {
          try await lane.probe.command(words[0], words[1], words[2], words[3])
        } else {
          try await lane.probe.command(words[0], words[1], words[2], words[3], words[4], words[5])
        }
      }
    ) { lane in
      try await lane.request("device:\(TransformFixture.tokens(in: [(0, 1)])[0])", count: 70)
      await lane.eventually("they are judged") { lane.count(.unregistered) == 70 }
      await lane.eventually("they are committed") { try await lane.committed(lane.topics.requests) == 70 }
    }
  }

  /// The hash of a device is a view of `devices`: what cannot be read of it counts as nothing.
  @Test(arguments: ["key", "u", "r", "a", "set"])
  func `a registration mends what Redis has of its device`(damage: String) async throws {
    try await TransformFixture.with { lane in
      let token = TransformFixture.tokens(in: [(0, 1)])[0]
      let device = TransformFixture.keys.device(token)
      try await lane.register([token], for: "ada")
      switch damage {
      case "key":
        try await lane.probe.command("DEL", .text(device))
        try await lane.probe.command("SET", .text(device), "x")
      case "set":
        try await lane.probe.command("SET", "lost", "x")
        try await lane.probe.command("HSET", .text(device), "a", "lost")
      default: try await lane.probe.command("HSET", .text(device), .text(damage), "x")
      }
      try await lane.register([token], for: "ada", after: 1)
      #expect(lane.count(.deadLettered) == 0)
      try await lane.request("user:ada")
      await lane.eventually("it is delivered") { try await lane.waiting(token) == 1 }
    }
  }
}
