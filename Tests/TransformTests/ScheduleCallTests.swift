import Notifications
import Redis
import TestSupport
import Testing
import Worker

@testable import Store
@testable import Transform

/// What a lane asks of Redis where it has many schedules to do with.
@Suite struct ScheduleCallTests {
  /// Publishes a request for each of so many devices, due after so many seconds.
  private static func schedule(_ count: Int, seconds: Int, _ lane: TransformFixture) async throws {
    let records = TransformFixture.tokens(in: [(0, count)]).map { token in
      TestRecord(
        key: token, #"{"aps":{"alert":"x"}}"#,
        headers: [
          .init("target", "device:" + token), .init("apns-topic", TransformFixture.application),
          .init("trigger", #"{"type":"timeInterval","timeInterval":\#(seconds)}"#),
        ], partition: 0)
    }
    try await lane.kafka.publish(records, to: lane.topics.requests)
  }

  /// Has Redis keep the commands that follow, with the names of their scripts.
  private static func keepCommands(_ lane: TransformFixture) async throws {
    try await lane.probe.command("CONFIG", "SET", "slowlog-max-len", "1000000")
    try await lane.probe.command("CONFIG", "SET", "slowlog-log-slower-than", "0")
  }

  /// The scripts that were called since then, by their digests, in their order.
  private static func scripts(_ lane: TransformFixture) async throws -> [String] {
    let commands = try await lane.probe.command("SLOWLOG", "GET", "-1").array ?? []
    return commands.reversed().compactMap { $0.array?[3].array?.dropFirst().first?.text }
  }

  @Test func `occurrences that are due together are judged together`() async throws {
    let count = 200
    try await TransformFixture.with { lane in
      try await Self.keepCommands(lane)
      try await Self.schedule(count, seconds: 1, lane)
      await lane.eventually("all have fired") { lane.count(.unregistered) == count }
      let judged = try await Self.scripts(lane).count { $0 == Judge.script.sha1 }
      #expect((1...count / 2).contains(judged), "\(judged) calls of the judge for \(count) occurrences")
    }
  }

  @Test(arguments: [false, true])
  func `firings of a schedule that are due together in many zones are applied together`(repeats: Bool) async throws {
    let zones = ["Europe/Rome", "Asia/Tokyo", "America/Lima", "Africa/Cairo", "Asia/Dubai", "Asia/Kolkata", "Asia/Seoul", "Asia/Dhaka"]
    try await TransformFixture.with { lane in
      let tokens = TransformFixture.tokens(in: [(0, zones.count)])
      try await lane.register(tokens, for: "ada", zones: Dictionary(uniqueKeysWithValues: zip(tokens, zones)))
      let trigger = #"{"type":"calendar","dateComponents":{"hour":9,"minute":0},"repeats":\#(repeats)}"#
      try await lane.schedule("user:ada", "daily", trigger)
      await lane.eventually("it is scheduled") { lane.count(.scheduled) == 1 }
      try await Self.keepCommands(lane)
      try await lane.whileRedisStandsStill {
        try await lane.fireInAllZones("daily")
        await lane.eventually("all are taken") { lane.taken == 1 + zones.count }
      }
      await lane.eventually("all have fired") { lane.count(.addressed) == zones.count }
      let writes = try await Self.scripts(lane).count { $0 == Schedules.writeScript.sha1 }
      #expect((1...zones.count / 2).contains(writes), "\(writes) writes for \(zones.count) firings")
      for token in tokens { #expect(try await lane.waiting(token) == 1) }
      // Each goes to the device of its zone, and only the last one of all to all devices.
      let duplicates = lane.metric("\(MetricNames.deviceVerdicts.name){verdict=\"duplicate\"}")
      #expect(Int(duplicates) == (repeats ? 0 : zones.count - 1))
      await lane.eventually("Kafka has the last state") {
        let state = try await lane.state(of: "daily")
        return repeats ? state?.firings.count == zones.count : state?.phase == .ended(.fired)
      }
    }
  }

  @Test func `a backlog of requests that are due later leaves room for the lane's other calls`() async throws {
    let count = 4 * ScheduleStage.maximumRunning
    // No device is registered for the targets.
    try await TransformFixture.with({ $0.scheduledInBucket = 16 * count }) { lane in
      try await Self.keepCommands(lane)
      try await lane.whileRedisStandsStill {
        try await Self.schedule(count, seconds: 600, lane)
        await lane.eventually("all are taken") { lane.taken == count }
      }
      await lane.eventually("all are scheduled") { lane.count(.scheduled) == count }
      let begun = try await Self.scripts(lane).prefix { $0 != Schedules.writeScript.sha1 }.count { $0 == Schedules.readScript.sha1 }
      #expect((1...ScheduleStage.maximumRunning).contains(begun), "\(begun) were begun at once")
    }
  }
}
