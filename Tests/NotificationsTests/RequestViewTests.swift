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
    #expect(view.placeTrigger.isEmpty)
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
      (#"{"aps":{"content-available":1}}"#, PushType.background, PayloadFlags.contentAvailable),
      (#"{"aps":{"content-available":1,"alert":null,"badge":null,"sound":null,"category":null}}"#, .background, .contentAvailable),
      (#"{"aps":{"content-available":0}}"#, .alert, []), (#"{"aps":{"alert":"a","mutable-content":0}}"#, .alert, .alert),
      (#"{"aps":{"alert":{"title":null,"body":"a"},"mutable-content":null}}"#, .alert, .alert),
      (#"{"aps":{"content-available":1,"alert":"a"}}"#, .alert, [.contentAvailable, .alert]),
      (#"{"aps":{"content-available":1,"alert":""}}"#, .alert, .contentAvailable),
      (#"{"aps":{"content-available":1,"badge":1}}"#, .alert, [.contentAvailable, .badge]),
      (#"{"aps":{"content-available":1,"sound":"a"}}"#, .alert, [.contentAvailable, .sound]),
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

  @Test func `a payload's interruption level is among its flags, beside all others`() throws {
    for (members, level) in [
      ("", .active), (#","interruption-level":null"#, .active), (#","interruption-level":"active""#, .active),
      (#","interruption-level":"passive""#, .passive), (#","interruption-level":"time-sensitive""#, .timeSensitive),
      (#","interruption-level":"critical""#, .critical), (#","sound":{"critical":1,"name":"a"}"#, .critical),
      (#","sound":{"critical":0}"#, .active), (#","interruption-level":"passive","sound":{"critical":1}"#, .critical),
    ] as [(String, InterruptionLevel)] {
      let view = try #require(RequestFixture.valid(value: #"{"aps":{"alert":"a","mutable-content":1\#(members)}}"#).read().view)
      #expect(view.facts.flags.level == level, "\(members)")
      #expect(view.facts.flags.isMutable && !view.facts.flags.contains(.isRedriven))
      var flags = view.facts.flags.union(.isRedriven)
      for other in InterruptionLevel.allCases {
        flags.level = other
        #expect(flags.level == other && flags.isSuperset(of: [.alert, .mutableContent, .isRedriven]))
      }
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
    let origin = #"{"cluster":"c","topic":"notifications.requests","partition":3,"offset":1,"timestamp":5,"why":"redrive"}"#
    #expect(id(99, origin: origin) == id(1))
    #expect(id(99, topic: "other", origin: origin) == id(99, topic: "other"), "an origin that does not count gives nothing")
    #expect(NotificationID(id(1).description) == id(1))
    let text = Array(id(1).description)
    #expect(text[14] == "8" && "89ab".contains(text[19]))
  }

  @Test func anOriginGivesTheRevision() throws {
    let fixture = RequestFixture.valid(["carillon-origin": Self.origin(more: #","more":[]"#)], cluster: "east")
    let envelope = try #require(fixture.read().view).envelope
    #expect(envelope.revision == Revision(timestamp: 1_699_999_999_000, partition: 3, offset: 7))
    #expect(envelope.origin?.purpose == .redrive)
    #expect(envelope.origin?.cluster.text == "east")
  }

  @Test func `an origin ahead of its record says which request it is, and bars others only up to the record's time`() throws {
    let fixture = RequestFixture.valid(["carillon-origin": Self.origin(timestamp: 1_700_000_290_123), "apns-id": nil], cluster: "east")
    let envelope = try #require(fixture.read().view).envelope
    let source = SourcePosition(partition: 3, offset: 7, timestamp: 1_700_000_290_123)
    #expect(envelope.source == source)
    #expect(envelope.id == .derived(topic: fixture.record.topic, source: source))
    #expect(envelope.revision == Revision(timestamp: 1_700_000_000_123, partition: 3, offset: 7))
  }

  /// An origin as a header has it.
  private static func origin(
    cluster: String = "east", topic: String = "notifications.requests", partition: Int32 = 3, offset: Int64 = 7,
    timestamp: Int64 = 1_699_999_999_000, more: String = ""
  ) -> String {
    #"{"cluster":"\#(cluster)","topic":"\#(topic)","partition":\#(partition),"offset":\#(offset),"timestamp":\#(timestamp),"#
      + #""why":"redrive"\#(more)}"#
  }

  /// The record lies at offset 42 of partition 3, and its time is 1,700,000,000,123.
  @Test(
    arguments: [
      (origin(), nil), (origin(offset: 41, timestamp: 0), nil), (origin(timestamp: 1_700_000_300_123), nil),
      (origin(cluster: "west"), "names the cluster that reads it"), (origin(cluster: "eas"), "names the cluster that reads it"),
      (origin(topic: "other.requests"), "names the topic that its record lies in"), (origin(partition: 2), "names the partition"),
      (origin(offset: 42), "an offset below"), (origin(offset: .max), "an offset below"),
      (origin(timestamp: 1_700_000_300_124), "five minutes"), (origin(timestamp: .max), "five minutes"),
    ] as [(String, String?)])
  func `an origin counts for its own cluster, topic and partition, behind its offset and near its time`(_ origin: String, rule: String?)
    throws
  {
    let fixture = RequestFixture.valid(["carillon-origin": origin], cluster: "east")
    guard let rule else {
      #expect(try #require(fixture.read().view).envelope.source.offset != 42)
      return
    }
    guard case .rejected(let rejection, let envelope) = fixture.read() else {
      Issue.record("\(origin) is accepted")
      return
    }
    #expect(rejection.reason == .badRequestParams && rejection.field.description == "carillon-origin")
    #expect(rejection.rule.contains(rule), "it says: \(rejection.rule)")
    // What does not count lends nothing to the event, least of all the derived id of another request.
    #expect(envelope.origin == nil && envelope.source == fixture.record.position && envelope.published == 1_700_000_000_123)
    let position = fixture.record.position
    #expect(envelope.id == .derived(topic: fixture.record.topic, source: position))
  }

  @Test func `numbers of any size are compared without an overflow`() {
    for timestamp in [0, .max] as [Int64] {
      for given in [0, .max] as [Int64] {
        let fixture = RequestFixture(
          headers: [
            ("apns-topic", "a"), ("target", "user:ada"),
            ("carillon-origin", Self.origin(partition: .max, offset: .max - 1, timestamp: given)),
          ], position: SourcePosition(partition: .max, offset: .max, timestamp: timestamp))
        #expect((fixture.read().view != nil) == (given <= timestamp))
      }
    }
  }

  @Test(arguments: [(1_699_999_999_000, 1_699_999_999), (1_700_000_200_000, 1_700_000_000)] as [(Int64, Int64)])
  func `the longest lifetime begins at the earlier of the origin's time and the record's`(_ timestamp: Int64, begin: Int64) throws {
    let fixture = RequestFixture.valid(["carillon-origin": Self.origin(timestamp: timestamp), "apns-expiration": "9999999999"])
    let view = try #require(fixture.read(RequestLimits(longestLifetime: 3_600)).view)
    #expect(view.expiration == begin + 3_600)
  }

  @Test func `a tool that does not know the cluster's name takes any`() {
    #expect(RequestFixture.valid(["carillon-origin": Self.origin(cluster: "west")]).read().view != nil)
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

  @Test func `a removal of all names itself, and its entry nothing`() throws {
    let view = try #require(RequestFixture.valid(["operation": "remove"], value: #"{"all":true}"#).read().view)
    var names: [String] = []
    view.forEachIdentifier { names.append($0.text) }
    #expect(view.removesAll && names == ["\(view.envelope.id)"])
    var buffer = ByteBuffer()
    try DeliveryEntry(removing: .empty, by: view, id: view.envelope.id).append(to: &buffer)
    let frame = try buffer.withUnsafeBytes { bytes in
      let entry = try #require(DeliveryEntryView(kept: bytes))
      #expect(entry.removesAll)
      return JSONWriter.text { ServerFrames.remove(entry, revision: view.envelope.revision, delivery: 7, to: &$0) }
    }
    guard case .remove(let removal) = try withBytes(frame, { try ServerFrame($0) }) else {
      Issue.record("no removal: \(frame)")
      return
    }
    #expect(removal.removesAll && removal.identifiers.isEmpty && removal.revision == view.envelope.revision.description)
  }

  @Test(
    arguments: [
      ((100, 3, 7), true), ((100, 3, 42), false), ((100, 3, 43), false), ((1_700_000_000_122, 2, 99), true),
      ((1_700_000_000_124, 2, 1), false), ((1_700_000_300_123, 3, 41), true), ((.max, 3, 1), true),
    ] as [((UInt64, UInt32, UInt64), Bool)])
  func `a removal takes what is older than a bound, where that is older than the removal`(_ bound: (UInt64, UInt32, UInt64), counts: Bool)
    throws
  {
    let revision = Revision(timestamp: bound.0, partition: bound.1, offset: bound.2)
    let fixture = RequestFixture.valid(["operation": "remove", "apns-collapse-id": "a"], value: #"{"notNewerThan":"\#(revision)"}"#)
    let view = try #require(fixture.read().view)
    // A bound with a later time reaches up to the removal's own, or one record would bar what is published afterwards.
    let reached = Revision(timestamp: min(bound.0, 1_700_000_000_123), partition: bound.1, offset: bound.2)
    #expect(view.bound(below: view.envelope.revision) == (counts ? reached : nil))
  }

  @Test func `a removal of what waits for a place is kept in the entry and told to the device`() throws {
    for isAsked in [true, false] {
      let bound = Revision(timestamp: 100, partition: 3, offset: 7)
      let value = #"{"identifiers":["a"],"scope":"\#(isAsked ? "pending" : "delivered")","notNewerThan":"\#(bound)"}"#
      let view = try #require(RequestFixture.valid(["operation": "remove"], value: value).read().view)
      var buffer = ByteBuffer()
      try DeliveryEntry(removing: UnsafeRawBufferPointer(start: nil, count: 0), by: view, id: view.envelope.id).append(to: &buffer)
      try buffer.withUnsafeBytes { bytes in
        let entry = try #require(DeliveryEntryView(kept: bytes))
        #expect(entry.removesPending == isAsked && entry.kind == .remove && !entry.removesWhenOpened)
        let frame = JSONWriter.text { ServerFrames.remove(entry, revision: view.envelope.revision, delivery: 8, to: &$0) }
        #expect(frame.contains(#""scope":"pending""#) == isAsked)
      }
    }
    for (value, field) in [
      (#"{"identifiers":["a"],"scope":"all"}"#, "scope"), (#"{"all":true,"scope":"pending"}"#, "scope"),
      (#"{"identifiers":["a"],"scope":"pending","scope":"pending"}"#, "scope"),
    ] {
      let reading = RequestFixture.valid(["operation": "remove"], value: value).read()
      #expect(reading.rejection?.field.description == field, "\(value)")
    }
  }

  @Test func `a removal of what is pending is a cancel, unless it has a bound as the cluster's own`() throws {
    let bound = #""notNewerThan":"\#(Revision(timestamp: 100, partition: 3, offset: 7))""#
    for (members, operation) in [
      (#""scope":"pending""#, .cancel), (#""scope":"pending",\#(bound)"#, .remove), (#""scope":"delivered""#, .remove), (bound, .remove),
    ] as [(String, RequestView.Operation)] {
      let view = try #require(RequestFixture.valid(["operation": "remove"], value: #"{"identifiers":["a"],\#(members)}"#).read().view)
      #expect(view.operation == operation, "\(members)")
      #expect(view.removesPending == (operation == .remove && members.contains("pending")), "\(members)")
    }
  }

  @Test func `what opening does is kept in the entry and in its receipt`() throws {
    for isAsked in [true, false] {
      let view = try #require(RequestFixture.valid(["target": "user:ada", "when-opened": isAsked ? "remove" : nil]).read().view)
      var buffer = ByteBuffer()
      var receipt = ByteBuffer()
      try DeliveryEntry(view).append(to: &buffer)
      try buffer.withUnsafeBytes { bytes in
        let entry = try #require(DeliveryEntryView(kept: bytes))
        #expect(entry.removesWhenOpened == isAsked && entry.kind == .notify)
        ReceiptView.append(of: entry, revision: view.envelope.revision, deviceHash: 7, to: &receipt)
      }
      try receipt.withUnsafeBytes { bytes in
        let read = try #require(ReceiptView(bytes))
        #expect(read.removesWhenOpened == isAsked && read.id == view.envelope.id && read.delivered != nil)
      }
    }
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
