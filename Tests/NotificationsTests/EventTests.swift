import JSON
import Testing

@testable import Notifications

extension Event {
  /// The text of a member that only some outcomes have.
  func member(_ name: String) -> String? { (try? JSONValue(parsing: json))?[name]?.stringValue }
}

@Suite struct EventTests {
  /// The event as a tool reads it.
  private func told(_ facts: EventFacts, topic: String = "notifications.requests", at time: Int64 = 1_700_000_001_234) throws -> Event {
    var writer = EventWriter(source: "/carillon/test", worker: "fan-out-1", requestsTopic: topic)
    writer.write(facts, at: time)
    var headers: [(name: String, value: String)] = []
    writer.forEachHeader { headers.append(($0.rawValue, $1.text)) }
    return try writer.withValue { try Event(headers: headers, value: $0) }
  }

  private func facts(_ type: Outcome, device: String = RequestFixture.token) throws -> EventFacts {
    let fixture = RequestFixture.valid(["target": "user:ada", "traceparent": DeliveryTests.trace])
    var facts = EventFacts(type, of: try #require(fixture.read().view))
    facts.device = fixture.bytes(device)
    return facts
  }

  @Test func anEventIsReadAsItWasTold() throws {
    var told = try facts(.response)
    told.details = .response(
      ("r-1" as StaticString).bytes, action: ("REPLY" as StaticString).bytes, userText: ("Hi" as StaticString).bytes, at: 1_700_000_000_000)
    let event = try self.told(told)
    #expect(event.type == .response && event.typeName == "carillon.response.v1" && event.cluster == "/carillon/test")
    #expect(event.subject == told.id?.description && event.id == told.id && event.identifier == told.id.map { Name($0.description) })
    #expect(event.time == 1_700_000_001_234 && event.traceparent == DeliveryTests.trace)
    #expect(event.device == RequestFixture.token && event.target == nil && event.user == "ada" && event.application == "com.example.shop")
    #expect(event.source == SourceCoordinates(topic: "notifications.requests", partition: 3, offset: 42, timestamp: 1_700_000_000_123))
    #expect(event.revision == told.revision && event.worker == "fan-out-1")
    #expect(event.member("response") == "r-1" && event.member("action") == "REPLY" && event.member("userText") == "Hi")
    #expect(event.member("at") == Timestamp.text(1_700_000_000_000))
  }

  @Test func theRevisionIsThatOfTheSourceUnlessTheEventNamesAnother() throws {
    var facts = try facts(.delivered)
    let source = try #require(facts.source)
    facts.revision = Revision(source)
    let event = try told(facts)
    #expect(event.revision == Revision(source) && !event.json.contains("revision"))
    for other in [Revision(source).inIncarnation(1), Revision(timestamp: 1_800_000_000_000, partition: 3, offset: 42)] {
      facts.revision = other
      #expect(try told(facts).revision == other)
    }
    let headers = [("ce_specversion", "1.0"), ("ce_id", "1"), ("ce_type", "carillon.delivered.v1"), ("ce_source", "/c")]
    let wrong = #"{"source":{"topic":"t","partition":3,"offset":42},"revision":"12"}"#
    let garbage = try withBytes(wrong) { try Event(headers: headers.map { (name: $0.0, value: $0.1) }, value: $0) }
    #expect(garbage.source != nil && garbage.revision == nil, "one that is none is not taken for the source's")
  }

  @Test func theSameHappeningHasTheSameIDWhenAndWhereverItIsTold() throws {
    let first = try told(try facts(.delivered))
    let again = try told(try facts(.delivered), at: 1_800_000_000_000)
    #expect(first.eventID == again.eventID)
    #expect(first.eventID.count == 32)
    // A record that comes again names its first topic, which is the configured one for the cluster that had it first.
    var replayed = try facts(.delivered)
    replayed.sourceTopic = ("notifications.requests" as StaticString).bytes
    #expect(try told(replayed, topic: "other.requests").eventID == first.eventID)
  }

  @Test func aDeliveryThatTheDeviceHadSaysSoAndIsTheSameHappening() throws {
    var known = try facts(.delivered)
    known.details = .reason("known")
    #expect(try told(known).member("reason") == "known")
    #expect(try told(known).eventID == told(try facts(.delivered)).eventID)
  }

  @Test func differentHappeningsHaveDifferentIDs() throws {
    var all: [EventFacts] = [try facts(.delivered), try facts(.updated), try facts(.delivered, device: String(repeating: "ab", count: 32))]
    for change in 0..<6 {
      var other = try facts(.delivered)
      switch change {
      case 0: other.source?.offset += 1
      case 1: other.source?.partition += 1
      case 2: other.sourceTopic = ("elsewhere" as StaticString).bytes
      case 3: other.id = NotificationID(high: 1, low: 2)
      case 4: other.discriminator = ("a" as StaticString).bytes
      default: other.discriminator = ("b" as StaticString).bytes
      }
      all.append(other)
    }
    for response in ["r-1", "r-2"] as [StaticString] {
      var other = try facts(.response)
      other.details = .response(response.bytes, action: ("A" as StaticString).bytes, userText: nil, at: nil)
      all.append(other)
    }
    #expect(Set(try all.map { try told($0).eventID }).count == all.count)
  }

  @Test func aRejectedRequestSaysWhy() throws {
    let fixture = RequestFixture.valid(value: #"{"aps":{"badge":"x"}}"#)
    guard case .rejected(let rejection, let envelope) = fixture.read() else {
      Issue.record("accepted")
      return
    }
    var facts = EventFacts(.rejected, of: envelope)
    facts.details = .rejected(rejection)
    let event = try told(facts)
    #expect(event.member("reason") == "BadRequestPayload" && event.member("field") == "aps.badge")
    #expect(event.member("rule") == "A badge is an integer from 0 to 2147483647; 0 clears it.")
    #expect(event.application == "com.example.shop")
    #expect(event.device == nil && event.target == "device:\(RequestFixture.token)")
    #expect(event.type == .rejected)
  }

  @Test func whatIsLongOrNoTextIsToldAllTheSame() throws {
    let fixture = RequestFixture.valid(["target": nil], key: String(repeating: "k", count: 100_000))
    guard case .rejected(_, var envelope) = fixture.read() else {
      Issue.record("accepted")
      return
    }
    #expect(try #require(try told(EventFacts(.rejected, of: envelope)).target).utf8.count < 1_000)
    let bytes: [UInt8] = [0xFF, 0x00, 0x22]
    let event = try bytes.withUnsafeBytes { bytes in
      let record = RequestRecord(
        key: bytes, value: .empty, headers: RequestHeaders(), topic: .empty, position: SourcePosition(partition: 0, offset: 0, timestamp: 0)
      )
      envelope = RequestEnvelope(record)
      return try told(EventFacts(.rejected, of: envelope))
    }
    #expect(event.target == "\u{FFFD}\0\"")
  }

  @Test func anEventAboutADeviceHasTheTokenAsItsSubject() throws {
    var facts = EventFacts(.registered)
    let json = JSONWriter.text { DeviceTests.registration.write(to: &$0) }
    let fixture = RequestFixture(headers: [])
    facts.device = fixture.bytes(RequestFixture.token)
    facts.details = .registration(fixture.bytes(json))
    let event = try told(facts)
    #expect(event.subject == RequestFixture.token)
    #expect(event.json.contains(json))
  }

  @Test func whatIsNoEventIsRefused() {
    #expect(throws: FieldError.self) { try withBytes("{}") { try Event(headers: [], value: $0) } }
    let headers = [("ce_specversion", "1.0"), ("ce_id", "1"), ("ce_type", "else"), ("ce_source", "/")].map { (name: $0.0, value: $0.1) }
    #expect(throws: FieldError.self) { try withBytes("x") { try Event(headers: headers, value: $0) } }
    #expect(throws: Never.self) { try withBytes("{}") { try Event(headers: headers, value: $0) } }
  }

  @Test func theTypesAreNamedAsInTheContract() {
    for type in Outcome.events {
      #expect(type.cloudEventsType?.description == "carillon.\(type.name).v1")
      #expect(Outcome(cloudEventsType: type.cloudEventsType?.description ?? "") == type)
    }
    for header in EventHeader.allCases { #expect(header.name.description == header.rawValue) }
  }

  @Test func aDeadLetterKeepsItsHeaders() {
    let source = SourceCoordinates(topic: "notifications.requests", partition: 3, offset: 42, timestamp: 5)
    for letter in [
      DeadLetter(Rejection(.badTopic, field: "apns-topic", rule: "A rule."), source: source),
      DeadLetter(poison: "the worker went down", tries: 5, source: source),
      DeadLetter(unreadable: "no checksum fits", 42..<50, of: "notifications.requests", partition: 3),
    ] {
      let headers = letter.headers
      #expect(DeadLetter(headers: headers) == letter)
      // A producer's own headers stand before the cluster's.
      let forged = DeadLetterHeader.allCases.map { (name: $0.rawValue, value: "7") }
      #expect(DeadLetter(headers: forged + headers) == letter)
    }
    #expect(DeadLetter(headers: []) == nil)
  }
}
