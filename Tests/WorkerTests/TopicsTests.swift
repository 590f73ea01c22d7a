import Testing
import Worker

@Suite struct TopicsTests {
  @Test func settingsThatAGuaranteeRestsOnAreComparedAndLongerRetentionIsNoDifference() {
    let topics = Topics(prefix: "t.")
    for topic in topics.all { #expect(topics.differences(of: topic, settings: topics.configuration(of: topic)).isEmpty, "\(topic)") }
    #expect(topics.differences(of: topics.devices, settings: ["cleanup.policy": "delete"]) == ["has cleanup.policy=delete, not compact"])
    #expect(topics.differences(of: topics.requests, settings: ["message.timestamp.type": "CreateTime", "retention.ms": "-1"]).count == 1)
    #expect(topics.differences(of: topics.events, settings: ["retention.ms": "1"]).count == 1)
    #expect(topics.differences(of: topics.events, settings: ["retention.ms": "999999999999999"]).isEmpty)
    #expect(topics.differences(of: topics.deadLetters, settings: ["retention.ms": "999999999999999"]).count == 1)
    #expect(topics.differences(of: topics.requests, settings: [:]).isEmpty, "what is not told is not compared")
  }
}
