import EventLoop
import Kafka
import Notifications
import Redis
import TestSupport
import Testing
import Worker

@testable import Store
@testable import Transform

/// What becomes of due times that a worker with another version of the time zone database computed.
@Suite struct ZoneDataTests {
  /// Due about half a day from now.
  private static let trigger = {
    let hour = (WallClock.seconds() / 3_600 + 13) % 24
    return #"{"type":"calendar","dateComponents":{"hour":\#(hour),"minute":0,"timeZone":"Europe/Rome"},"repeats":true}"#
  }()

  @Test func `due times of another time zone database are moved, in Redis and in Kafka, and the place gets the version`() async throws {
    try await TransformFixture.with { lane in
      let token = TransformFixture.tokens(in: [(0, 1)])[0]
      let target = "device:" + token
      try await lane.register([token], for: "ada")
      for number in 0..<150 { try await lane.schedule(target.replacing(token.suffix(4), with: "\(1000 + number)"), "daily", Self.trigger) }
      try await lane.schedule(target, "daily", Self.trigger)
      await lane.eventually("they are scheduled") { lane.count(.scheduled) == 151 }
      let right = try #require(try await lane.state(of: "daily")?.pending?.earliest)

      // As a worker of a former release would have left it: an hour late.
      let key = "s{0}\(TransformFixture.application)/\(target)"
      let bytes = try #require(try await lane.probe.command("HGET", .text(key), "daily").bytes)
      var record = try #require(Array(bytes).withUnsafeBytes { ScheduleRecord($0) })
      var pending = try #require(record.pending)
      pending.dueTimes[0].due += 3_600_000
      record.phase = .pending(pending)
      var buffer = ByteBuffer()
      try record.append(to: &buffer)
      try await lane.probe.command("HSET", .text(key), "daily", .bytes(buffer.withUnsafeBytes { Array($0) }))
      let version = TransformFixture.keys.zoneData(0)
      try await lane.probe.command("HSET", .text(version), "0", "2001a")

      // The lane looks at the place again when something is due there.
      try await lane.schedule(target, "soon", #"{"type":"timeInterval","timeInterval":1}"#)
      await lane.eventually("the place has the version of this worker") {
        let known = try await lane.probe.command("HGET", .text(version), "0").text
        return known != nil && known != "2001a"
      }
      await lane.eventually("Kafka has the due time of this worker's database") {
        let newest = try await lane.schedules().last { $0.key.identifier == "daily" && $0.key.target == Name(target) }
        return newest?.state.serial ?? 0 > record.serial && newest?.state.pending?.earliest == right
      }
      let standing = try #require(try await lane.probe.command("HGET", .text(key), "daily").bytes)
      #expect(Array(standing).withUnsafeBytes { ScheduleRecord($0) }?.pending?.earliest == right)
      // Only the schedule that moves costs a record: one for each would be 300.
      #expect(try await lane.committed(lane.topics.requests) < 200)
    }
  }
}
