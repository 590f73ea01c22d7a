import JSON
import Testing

@testable import Notifications

@Suite struct RequestViewTests {
  @Test func absentHeadersHaveTheirDefaults() throws {
    let fixture = RequestFixture.valid()
    let view = try #require(fixture.read().view)
    #expect(view.priority == 10)
    #expect(view.pushType == .alert)
    #expect(view.operation == .notify)
    #expect(view.expiration == 1_700_000_000 + 30 * 86_400)
    #expect(view.envelope.isDerivedID)
    #expect(view.facts.flags == .alert)
    #expect(view.trigger.isEmpty)
    #expect(view.payload.text == #"{"aps":{"alert":"Hello"}}"#)
    var identifiers: [String] = []
    view.forEachIdentifier { identifiers.append($0.text) }
    #expect(identifiers == [view.envelope.id.description])
  }

  @Test func anExpirationBeyondTheLongestLifetimeIsCut() throws {
    let limits = RequestLimits(longestLifetime: 3600)
    for (given, resolved) in [("0", 0), ("1700000100", 1_700_000_100), ("1700009999", 1_700_003_600), ("1", 1)] {
      let fixture = RequestFixture.valid(["apns-expiration": given])
      #expect(try #require(fixture.read(limits).view).expiration == Int64(resolved))
    }
  }

  @Test func aSilentPayloadIsABackgroundPush() throws {
    for (payload, type, flags) in [
      (#"{"aps":{"content-available":1}}"#, PushType.background, PayloadFlags.silent),
      (#"{"aps":{"content-available":1,"alert":"a"}}"#, .alert, .alert),
      (#"{"aps":{"content-available":1,"badge":1}}"#, .alert, .badge),
      (#"{"aps":{"content-available":1,"sound":"a"}}"#, .alert, .sound),
      (#"{"aps":{"alert":{"body":""},"mutable-content":1}}"#, .alert, .mutableContent),
      (#"{"aps":{"alert":{"title":"a"},"mutable-content":1}}"#, .alert, [.alert, .mutableContent]),
      (#"{"aps":{"alert":{"launch-image":"a"}}}"#, .alert, []), (#"{"aps":{"alert":""}}"#, .alert, []),
    ] as [(String, PushType, PayloadFlags)] {
      let fixture = RequestFixture.valid(value: payload)
      let view = try #require(fixture.read().view)
      #expect(view.pushType == type)
      #expect(view.priority == (type == .background ? 5 : 10))
      #expect(view.facts.flags == flags)
    }
  }

  @Test func theApplicationIsTheTopicWithoutItsSuffix() throws {
    let fixture = RequestFixture.valid(["apns-push-type": "pushtotalk", "apns-topic": "com.example.shop.voip-ptt"])
    let view = try #require(fixture.read().view)
    #expect(view.application.text == "com.example.shop")
    #expect(view.topic.text == "com.example.shop.voip-ptt")
  }

  @Test func aDerivedIDIsTheSameForTheSameRecordOnly() throws {
    func id(_ offset: Int64, topic: String = "notifications.requests", origin: String? = nil) -> NotificationID {
      let fixture = RequestFixture(
        headers: [("carillon-origin", origin)], topic: topic, position: SourcePosition(partition: 3, offset: offset, timestamp: 5))
      guard case .rejected(_, let envelope) = fixture.read() else { return NotificationID(high: 0, low: 0) }
      return envelope.id
    }
    #expect(id(1) == id(1))
    #expect(id(1) != id(2))
    #expect(id(1) != id(1, topic: "other"))
    #expect(
      id(
        99, topic: "other",
        origin: #"{"cluster":"c","topic":"notifications.requests","partition":3,"offset":1,"timestamp":5,"why":"redrive"}"#)
        == id(1))
    #expect(NotificationID(id(1).description) == id(1))
    let text = Array(id(1).description)
    #expect(text[14] == "8" && "89ab".contains(text[19]))
  }

  @Test func anOriginGivesTheRevision() throws {
    let origin = #"{"cluster":"east","topic":"elsewhere","partition":1,"offset":7,"timestamp":1699999999000,"why":"redrive","more":[]}"#
    let fixture = RequestFixture.valid(["carillon-origin": origin])
    let envelope = try #require(fixture.read().view).envelope
    #expect(envelope.revision == Revision(timestamp: 1_699_999_999_000, partition: 1, offset: 7))
    #expect(envelope.sourceTopic.text == "elsewhere")
    #expect(envelope.origin?.purpose == .redrive)
    #expect(envelope.origin?.cluster.text == "east")
  }

  @Test func anOriginIsReadAsItWasWritten() throws {
    for purpose in [Origin.Purpose.replay, .redrive] {
      let source = SourceCoordinates(topic: "a.b_c-d", partition: 3, offset: .max, timestamp: 1_700_000_000_001)
      var writer = JSONWriter()
      Origin.write(cluster: "east-1", source, why: purpose, to: &writer)
      try writer.withUnsafeBytes { text in
        let origin = try #require(Origin(text))
        #expect(origin.cluster.text == "east-1")
        #expect(SourceCoordinates(topic: origin.topic.text, position: origin.position) == source)
        #expect(origin.purpose == purpose)
      }
    }
  }

  @Test func aRejectedRequestStillSaysWhichItIs() throws {
    let fixture = RequestFixture.valid(["apns-id": "123e4567-e89b-12d3-a456-42665544000a", "apns-topic": nil])
    guard case .rejected(let rejection, let envelope) = fixture.read() else {
      Issue.record("accepted")
      return
    }
    #expect(rejection.reason == .missingTopic)
    #expect(envelope.id.description == "123e4567-e89b-12d3-a456-42665544000a")
    #expect(envelope.target.text == "device:\(RequestFixture.token)")
    #expect(envelope.source.offset == 42)
  }

  @Test func aRemoveNamesItsIdentifier() throws {
    let fixture = RequestFixture.valid(
      ["operation": "remove"], value: #"{"identifiers":["th\u0069rd"],"x":{}}"#)
    var identifiers: [String] = []
    try #require(fixture.read().view).forEachIdentifier { identifiers.append($0.text) }
    #expect(identifiers == ["third"])
  }

  @Test func onlyAWellFormedTraceIsCarriedOn() throws {
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    for (given, carried) in [
      ("00-" + trace, "00-" + trace), ("00-" + trace + "-x", ""), ("01-" + trace + "-x", "01-" + trace), ("01-" + trace + "x", ""),
      ("ff-" + trace, ""), ("00-" + trace.uppercased(), ""), ("00-" + trace.dropLast(), ""),
      ("00-00000000000000000000000000000000-00f067aa0ba902b7-01", ""), ("00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01", ""),
      ("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"),
    ] {
      let fixture = RequestFixture.valid(["traceparent": given])
      #expect(try #require(fixture.read().view).envelope.traceparent.text == carried)
    }
  }

  @Test func anOffsetSaysWhereThePayloadIsWrong() {
    #expect(RequestFixture.valid(value: #"{"aps":{"badge":"x"}}"#).read().rejection?.offset == 16)
    #expect(RequestFixture.valid(value: #"{"aps":{"badge":01}}"#).read().rejection?.offset == 17)
  }
}
