import Testing
import Worker

@Suite struct TopicsTests {
  @Test func settingsThatAGuaranteeRestsOnAreComparedAndLongerRetentionIsNoDifference() {
    let topics = Topics(prefix: "t.")
    for topic in topics.all { #expect(topics.differences(of: topic, settings: topics.configuration(of: topic)).isEmpty, "\(topic)") }
    #expect(topics.differences(of: topics.devices, settings: ["cleanup.policy": "delete"]) == ["has cleanup.policy=delete, not compact"])
    #expect(topics.differences(of: topics.people, settings: ["cleanup.policy": "delete"]) == ["has cleanup.policy=delete, not compact"])
    #expect(
      topics.differences(of: topics.requests, settings: ["message.timestamp.type": "CreateTime", "retention.ms": "-1"]) == [
        "has message.timestamp.type=CreateTime, not LogAppendTime, so its producers' clocks decide which record is the newest"
      ])
    #expect(
      topics.differences(of: topics.requests, settings: ["compression.type": "producer"]) == [
        "has compression.type=producer, not uncompressed, so a small batch of a producer may become larger than a worker's memory"
      ])
    #expect(topics.differences(of: topics.events, settings: ["retention.ms": "1", "compression.type": "producer"]).count == 1)
    #expect(topics.differences(of: topics.events, settings: ["retention.ms": "999999999999999"]).isEmpty)
    #expect(topics.differences(of: topics.events, settings: ["message.timestamp.type": "CreateTime"]).isEmpty, "only an audit needs it")
    #expect(topics.differences(of: topics.deadLetters, settings: ["retention.ms": "999999999999999"]).count == 1)
    #expect(topics.differences(of: topics.requests, settings: [:]).isEmpty, "what is not told is not compared")
  }

  @Test func `schedules are compacted, and their ends are kept for longer than any request lives`() {
    let topics = Topics(prefix: "t.")
    let wanted = topics.configuration(of: topics.schedule)
    #expect(wanted == ["cleanup.policy": "compact", "delete.retention.ms": String(32 * 86_400_000)])
    #expect(topics.differences(of: topics.schedule, settings: wanted).isEmpty)
    let longer = ["cleanup.policy": "compact", "delete.retention.ms": String(33 * 86_400_000)]
    #expect(topics.differences(of: topics.schedule, settings: longer).isEmpty)
    #expect(
      topics.differences(of: topics.schedule, settings: ["delete.retention.ms": "86400000"])
        == ["has delete.retention.ms=86400000, not 2764800000"])
  }

  @Test func `only a cluster for load has the topic that marks it`() {
    let topics = Topics(prefix: "t.")
    #expect(topics.load == "t.load" && !topics.all.contains(topics.load))
    #expect(topics.partitions(of: topics.load, most: 12) == 1)
    #expect(topics.differences(of: topics.load, settings: ["cleanup.policy": "compact"]).isEmpty)
  }

  @Test func `a topic that takes less than one record may need is told`() {
    let topics = Topics(prefix: "t.")
    let small = ["max.message.bytes": "16384"]
    #expect(topics.differences(of: topics.events, settings: small) == ["has max.message.bytes=16384, and one record may need 32768"])
    #expect(topics.differences(of: topics.events, settings: ["max.message.bytes": "65536"]).isEmpty)
    #expect(topics.differences(of: topics.requests, settings: small).isEmpty, "how large requests may be is the operator's choice")
  }
}
