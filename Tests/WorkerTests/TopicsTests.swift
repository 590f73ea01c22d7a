import Testing
import Worker

@Suite struct TopicsTests {
  @Test func settingsThatAGuaranteeRestsOnAreComparedAndLongerRetentionIsNoDifference() {
    let topics = Topics(prefix: "t.")
    for topic in topics.all { #expect(topics.differences(of: topic, settings: topics.configuration(of: topic)).isEmpty, "\(topic)") }
    #expect(topics.differences(of: topics.devices, settings: ["cleanup.policy": "delete"]) == ["has cleanup.policy=delete, not compact"])
    #expect(
      topics.differences(of: topics.requests, settings: ["message.timestamp.type": "CreateTime", "retention.ms": "-1"]) == [
        "has message.timestamp.type=CreateTime, not LogAppendTime, so its producers' clocks decide which record is the newest"
      ])
    #expect(topics.differences(of: topics.events, settings: ["retention.ms": "1"]).count == 1)
    #expect(topics.differences(of: topics.events, settings: ["retention.ms": "999999999999999"]).isEmpty)
    #expect(topics.differences(of: topics.events, settings: ["message.timestamp.type": "CreateTime"]).isEmpty, "only an audit needs it")
    #expect(topics.differences(of: topics.deadLetters, settings: ["retention.ms": "999999999999999"]).count == 1)
    #expect(topics.differences(of: topics.requests, settings: [:]).isEmpty, "what is not told is not compared")
  }

  @Test func `a topic that takes less than one record may need is told`() {
    let topics = Topics(prefix: "t.")
    let small = ["max.message.bytes": "16384"]
    #expect(topics.differences(of: topics.events, settings: small) == ["has max.message.bytes=16384, and one record may need 32768"])
    #expect(topics.differences(of: topics.events, settings: ["max.message.bytes": "65536"]).isEmpty)
    #expect(topics.differences(of: topics.requests, settings: small).isEmpty, "how large requests may be is the operator's choice")
  }
}
