import Testing

@testable import Command
@testable import Worker

/// What the log says of conditions that are not ready.
@Suite struct UnreadyLogTests {
  private static func condition(_ name: String, since: Int64) -> Health.Condition {
    Health.Condition(name: name, lane: "transform-0", isReady: false, reason: "a reason", since: since)
  }

  @Test func `a condition that lasts is named once, and once more when it is over`() {
    var log = UnreadyLog()
    let redis = Self.condition("redis", since: 1_000)
    #expect(log.look([redis], at: 10_999).lasting.isEmpty, "it may be over soon")
    #expect(log.look([redis], at: 11_000).lasting == [redis])
    #expect(log.look([redis], at: 20_000).lasting.isEmpty)
    let kafka = Self.condition("kafka-writes", since: 15_000)
    #expect(log.look([redis, kafka], at: 25_000).lasting == [kafka])
    #expect(log.look([kafka], at: 26_000).ended == [redis])
    #expect(log.look([], at: 27_000).ended == [kafka])
    #expect(log.look([redis], at: 27_001).lasting == [redis], "it is not ready again")
  }

  @Test func `a short condition and the end of the process are not named`() {
    var log = UnreadyLog()
    #expect(log.look([Self.condition("redis", since: 0)], at: 9_000).lasting.isEmpty)
    #expect(log.look([], at: 12_000).ended.isEmpty)
    #expect(log.look([Self.condition("draining", since: 0)], at: 60_000).lasting.isEmpty)
  }
}
