import Foundation
import JSON
import Testing

@testable import Notifications

@Suite struct ContractTests {
  private let document: ContractDocument

  init() throws { document = try ContractDocument() }

  @Test func theDocumentNamesEveryEventFrameCloseCodeAndReason() throws {
    let schemas = Set(try #require(document["components", "schemas"]?.members).map(\.key))
    let events = schemas.filter { $0.hasPrefix("event.") }.map { String($0.dropFirst(6)) }
    #expect(Set(events) == Set(Outcome.events.map(\.name)))
    let frames = schemas.filter { $0.hasPrefix("frame.") }.map { String($0.dropFirst(6)) }
    #expect(Set(frames) == Set(DeviceFrameType.allCases.map(\.rawValue) + ServerFrameType.allCases.map(\.rawValue)))
    let codes = try #require(document["channels", "deviceProtocol", "x-close-codes"]?.elements)
    #expect(codes.count == CloseCode.allCases.count)
    for (entry, code) in zip(codes, CloseCode.allCases) {
      #expect(entry["code"]?.integerValue == Int64(code.rawValue))
      #expect(entry["name"]?.stringValue == code.name.description)
      #expect(entry["reason"]?.stringValue == code.reason)
      switch code.reconnection {
      case .never: #expect(entry["reconnect"]?["when"] == "never")
      case .asTold: #expect(entry["reconnect"]?["when"] == "asTold")
      case .backOff(let from, let to):
        #expect(entry["reconnect"] == ["when": "backOff", "fromMs": .integer(Int64(from)), "toMs": .integer(Int64(to))])
      }
    }
    func words(_ schema: String) -> [String] {
      document["components", "schemas", schema, "enum"]?.elements?.compactMap(\.stringValue) ?? []
    }
    #expect(words("rejectionReason") == RejectionReason.allCases.map(\.rawValue))
    #expect(words("refusalReason") == RefusalReason.allCases.map(\.rawValue))
    #expect(words("pushType") == PushType.allCases.map(\.name.description))
    func members(_ schema: String) -> Set<String> {
      Set(document["components", "schemas", schema, "properties"]?.members?.map(\.key) ?? [])
    }
    #expect(members("deadLetterHeaders") == Set(DeadLetterHeader.allCases.map(\.rawValue)))
    #expect(members("deadLetterStateHeaders") == Set(LetterStateHeader.allCases.map(\.rawValue)))
    #expect(members("deadLetterClaimHeaders") == Set(LetterClaimHeader.allCases.map(\.rawValue)))
    let states = document["components", "schemas", "deadLetterStateHeaders", "properties", "carillon-dead-letter-state", "enum"]
    #expect(states?.elements?.compactMap(\.stringValue) == LetterState.Kind.allCases.map(\.rawValue))
    #expect(members("eventHeaders") == Set(EventHeader.allCases.map(\.rawValue)))
    // The channel of a broadcast is refused in this version, so it is no part of the contract.
    #expect(members("requestHeaders") == Set(RequestHeader.allCases.map(\.name.description)).subtracting(["apns-channel-id"]))
    for key in APSKey.allCases { #expect(members("aps").contains(String(key.field.description.dropFirst(4)))) }
  }

  @Test func everyStateOfALetterFitsItsSchema() {
    let place = RecordPlace(partition: 3, offset: 1742)
    for state in [
      LetterState(.discarded, of: place, by: "ada@shop", at: 1_700_000_000_123),
      LetterState(.redriven, of: place, by: "ada@shop", at: 0, request: place, id: NotificationID(high: 1, low: 2), note: "mended"),
    ] {
      let headers = JSONValue.object(state.headers.map { JSONValue.Member(key: $0.name, value: .string($0.value)) })
      #expect(document.faults(of: headers, as: "deadLetterStateHeaders").isEmpty)
    }
  }

  @Test func `every claim on the dead letters fits its schema`() {
    for kind in [LetterClaim.Kind.begins(after: nil), .begins(after: 17), .goesOn, .ends] {
      let claim = LetterClaim(kind, run: "ab12", by: "ada@shop", at: 1_700_000_000_123)
      #expect(LetterClaim(headers: claim.headers) == claim)
      let headers = JSONValue.object(claim.headers.map { JSONValue.Member(key: $0.name, value: .string($0.value)) })
      #expect(document.faults(of: headers, as: "deadLetterClaimHeaders").isEmpty)
    }
  }

  @Test func everyReferenceLeadsSomewhere() {
    func walk(_ value: JSONValue) {
      for member in value.members ?? [] {
        if member.key == "$ref", let reference = member.value.stringValue {
          #expect(document.resolve(reference) != nil, "\(reference)")
        }
        walk(member.value)
      }
      for element in value.elements ?? [] { walk(element) }
    }
    walk(document.root)
  }

  /// What the schema of the payload says and what the reader says is the same, for every line of the rule book that is JSON.
  @Test func theSchemaOfThePayloadAgreesWithTheRules() {
    for rule in RequestRuleTests.payloadRules {
      guard let text = rule.value, let payload = try? JSONValue(parsing: text), text.utf8.count <= 4096 else { continue }
      // JSON Schema cannot see that a member stands twice; custom and unknown members are free.
      if text.contains(#""aps":{},"aps""#) || text.contains(#""badge":1,"badge""#) || text.contains(#""body":"a","body""#) { continue }
      if text.contains(#""critical":1,"critical""#) || text.contains(#""name":null,"name""#) { continue }
      let faults = document.faults(of: payload, as: "requestPayload").filter { !$0.hasSuffix("is not documented") }
      #expect(faults.isEmpty == (rule.reason == nil), "\(text) \(faults)")
    }
  }

  @Test func `the schemas of the payloads of other push types agree with their rules`() {
    for rule in RequestRuleTests.pushTypeRules {
      guard let text = rule.value, let payload = try? JSONValue(parsing: text) else { continue }
      let isManagement = rule.headers["apns-push-type"] == "mdm"
      // Where an aps is left, it is judged like any other; and a schema cannot see that a member stands twice.
      if isManagement, text.contains("aps") || text.contains(#""mdm":"a","mdm""#) { continue }
      let faults = document.faults(of: payload, as: isManagement ? "mdmPayload" : "liveActivityPayload")
        .filter { !$0.hasSuffix("is not documented") }
      #expect(faults.isEmpty == (rule.reason == nil), "\(text) \(faults)")
    }
  }

  @Test func `the schema of PushKit's payloads agrees with the rules`() {
    for rule in RequestRuleTests.bareRules where !["mdm", "liveactivity"].contains(rule.headers["apns-push-type"]) {
      guard let text = rule.value, let payload = try? JSONValue(parsing: text), payload["aps"] != .null else { continue }
      let isPushKit = ["voip", "complication", "fileprovider"].contains(rule.headers["apns-push-type"])
      let faults = document.faults(of: payload, as: isPushKit ? "pushKitPayload" : "requestPayload").filter {
        !$0.hasSuffix("is not documented")
      }
      #expect(faults.isEmpty == (rule.reason == nil), "\(rule.headers) \(text) \(faults)")
    }
  }

  @Test func everyWrittenEventFitsItsSchema() throws {
    let entry = try DeliveryTests.encoded()
    var writer = EventWriter(source: "/carillon/test", worker: "transform-1", requestsTopic: "notifications.requests")
    let fixture = RequestFixture.valid(["target": "user:ada"])
    let view = try #require(fixture.read().view)
    let registration = JSONWriter.text { DeviceTests.registration.write(to: &$0) }
    for type in Outcome.events {
      try entry.withUnsafeBytes { entry in
        try withBytes(RequestFixture.token) { device in
          try withBytes(registration) { registration in
            let entry = try #require(DeliveryEntryView(entry))
            var facts: EventFacts
            switch type {
            case .addressed:
              facts = EventFacts(type, of: view)
              facts.details = .addressed(devices: 3)
            case .rejected:
              facts = EventFacts(type, of: view.envelope)
              facts.details = .rejected(Rejection(.badRequestPayload, field: "aps.badge", rule: "A badge is a number.", offset: 7))
            case .registered, .settingsChanged, .unregisteredDevice:
              facts = EventFacts(type)
              facts.device = device
              facts.application = view.application
              if type != .unregisteredDevice { facts.details = .registration(registration) }
            default:
              let revision = Revision(entry.source)
              facts = EventFacts(type, of: entry, device: device, revision: type == .updated ? revision.inIncarnation(1) : revision)
              if type == .collapsed { facts.details = .by(view.envelope.id) }
              if type == .filtered { facts.details = .reason("quiet hours") }
              if type == .response || type == .dismissed {
                facts.details = .response(
                  ("r-1" as StaticString).bytes, action: ("REPLY" as StaticString).bytes,
                  userText: type == .response ? ("Grüße \"\n" as StaticString).bytes : nil, at: 1_700_000_000_000)
              }
            }
            writer.write(facts, at: 1_700_000_001_234)
            let value = writer.withValue { $0.text }
            #expect(document.faults(of: value, as: "event.\(type.name)") == [], "\(value)")
            var headers: [JSONValue.Member] = []
            writer.forEachHeader { header, value in headers.append(.init(key: header.rawValue, value: .string(value.text))) }
            #expect(document.faults(of: .object(headers), as: "eventHeaders") == [])
          }
        }
      }
    }
  }

  @Test func whatIsFilteredForAStoppedApplicationFitsItsSchema() throws {
    var writer = EventWriter(source: "/carillon/test", worker: "transform-1", requestsTopic: "notifications.requests")
    for target in ["user:ada", "device:\(RequestFixture.token)"] {
      for reason in ["wrong \"prices\"", ""] {
        let view = try #require(RequestFixture.valid(["target": target]).read().view)
        var facts = EventFacts(.filtered, of: view)
        try withBytes(RequestFixture.token) { device in
          if case .device = view.target { facts.device = device }
          try withBytes(reason) { reason in
            facts.details = .stopped(reason)
            writer.write(facts, at: 1_700_000_001_234)
            let value = writer.withValue { $0.text }
            #expect(document.faults(of: value, as: "event.filtered") == [], "\(value)")
            var headers: [(name: String, value: String)] = []
            writer.forEachHeader { headers.append(($0.rawValue, $1.text)) }
            let event = try writer.withValue { try Event(headers: headers, value: $0) }
            #expect(event.member("reason") == "ApplicationStopped" && event.member("detail") == (reason.isEmpty ? nil : reason.text))
          }
        }
      }
    }
  }

  @Test func theStopsOfAnApplicationFitTheirSchema() throws {
    var stops = ApplicationStops()
    let changes: [ApplicationStops.Change] = [
      .stop(by: "ada@shop", reason: "prices"), .allow([.critical, .timeSensitive]), .start(by: "bob"), .stop(by: "eve", reason: nil),
      .limit(RateLimit(perTarget: 5, perApplication: nil, window: 1_000), by: "ada"), .start(by: "bob"),
      .limit(RateLimit(perTarget: 5, perApplication: 100, window: 10_000), by: "ada"), .limit(nil, by: "bob"),
    ]
    for (number, change) in changes.enumerated() {
      let value = try #require(stops.value(change, forgettingBefore: 0))
      #expect(document.faults(of: String(decoding: value, as: UTF8.self), as: "applicationStops") == [])
      stops = try value.withUnsafeBytes { try ApplicationStops($0, timestamp: Int64(number)) }
    }
    #expect(!document.faults(of: #"{"state":"paused","stops":[{}],"more":1}"#, as: "applicationStops").isEmpty)
  }

  @Test func `the rejection of a request beyond a rate limit fits its schema, and says when to try again`() throws {
    var writer = EventWriter(source: "/carillon/test", worker: "transform-1", requestsTopic: "notifications.requests")
    guard case .accepted(let view) = RequestFixture.valid().read() else { return #expect(Bool(false)) }
    var facts = EventFacts(.rejected, of: view.envelope)
    facts.details = .limited(Rejection(.tooManyRequests, field: "target", rule: "A rule."), retryAfter: 1_700_000_001_000)
    writer.write(facts, at: 1_700_000_000_234)
    let value = writer.withValue { $0.text }
    #expect(document.faults(of: value, as: "event.rejected") == [], "\(value)")
    var headers: [(name: String, value: String)] = []
    writer.forEachHeader { headers.append(($0.rawValue, $1.text)) }
    let event = try writer.withValue { try Event(headers: headers, value: $0) }
    #expect(event.member("reason") == "TooManyRequests" && event.member("field") == "target")
    #expect(event.member("retryAfter") == Timestamp.text(1_700_000_001_000))
  }

  @Test func aRejectionAtADeviceFitsItsSchema() throws {
    let entry = try DeliveryTests.encoded()
    var writer = EventWriter(source: "/carillon/test", worker: "fan-out-1", requestsTopic: "notifications.requests")
    try entry.withUnsafeBytes { entry in
      try withBytes(RequestFixture.token) { device in
        let entry = try #require(DeliveryEntryView(entry))
        var facts = EventFacts(.rejected, of: entry, device: device, revision: Revision(entry.source))
        facts.details = .rejected(Rejection(.internalServerError, field: "payload", rule: "It was changed."))
        writer.write(facts, at: 1_700_000_001_234)
      }
    }
    let value = writer.withValue { $0.text }
    #expect(document.faults(of: value, as: "event.rejected") == [], "\(value)")
  }

  @Test func theJournalIsDescribed() throws {
    let verdicts = try #require(document["components", "schemas", "journalValue", "x-verdicts"]?.elements)
    #expect(verdicts.map { $0["value"]?.integerValue } == Array(0...14))
    #expect(verdicts.map { $0["name"]?.stringValue } == (0...14).map { byte in Outcome(journalByte: byte).map { "\($0)" } })
    let headers = JournalTests.headers.map { JSONValue.Member(key: $0.0, value: .string($0.1)) }
    #expect(document.faults(of: .object(headers), as: "journalHeaders") == [])
    #expect(document.faults(of: .object(Array(headers.dropLast())), as: "journalHeaders").count == 1)
    for name in [JournalLayout.Header.layout, JournalLayout.Header.worker, JournalLayout.Header.incarnation] {
      #expect(headers.contains { $0.key == name.description })
    }
  }

  @Test func everyWrittenFrameFitsItsSchema() throws {
    for (name, text) in try FrameTests.written() {
      #expect(document.faults(of: text, as: "frame.\(name)") == [], "\(text)")
    }
    let seen = Set(try FrameTests.written().map(\.name))
    #expect(seen == Set(DeviceFrameType.allCases.map(\.rawValue) + ServerFrameType.allCases.map(\.rawValue)))
  }

  @Test func `every frame has an example that fits its schema`() throws {
    for member in try #require(document["components", "messages"]?.members) {
      let examples = member.value["examples"]?.elements ?? []
      if member.key.hasPrefix("frame.") { #expect(!examples.isEmpty, "\(member.key) has no example") }
      for example in examples {
        let payload = try #require(example["payload"])
        #expect(document.faults(of: payload, as: member.key) == [], "\(payload.text)")
      }
    }
  }

  @Test func `every frame in the article on the device protocol fits its schema`() throws {
    let path = URL(filePath: #filePath).deletingLastPathComponent().appending(
      path: "../../Sources/carillon/Documentation.docc/DeviceProtocol.md")
    let article = try String(contentsOf: path, encoding: .utf8)
    let frames = article.matches(of: /```json\n(.*)\n```/).map { String($0.1) }
    var seen: Set<String> = []
    for text in frames {
      let type = try #require(try JSONValue(parsing: text)["type"]?.stringValue)
      #expect(document.faults(of: text, as: "frame.\(type)") == [], "\(text)")
      seen.insert(type)
    }
    #expect(seen.isSuperset(of: ["hello", "welcome", "notify", "remove", "ack", "response", "accepted", "heartbeat", "goaway"]))
    for code in CloseCode.allCases { #expect(article.contains("\(code.rawValue)") && article.contains("`\(code.name)`")) }
  }

  @Test func aWrittenRegistrationFitsItsSchema() {
    #expect(document.faults(of: JSONWriter.text { DeviceTests.registration.write(to: &$0) }, as: "registration") == [])
  }

  @Test func theJudgeFindsFaults() {
    #expect(document.faults(of: #"{"type":"goaway","reconnectAfterMs":-1,"reason":"x","more":1}"#, as: "frame.goaway").count == 2)
    #expect(document.faults(of: #"{"type":"accepted"}"#, as: "frame.accepted").count == 1)
    #expect(document.faults(of: #"{"type":"accepted","response":"a","request":"b"}"#, as: "frame.accepted").count == 1)
    #expect(document.faults(of: #"{"since":1,"application":"a b","device":"x"}"#, as: "registration").count == 2)
  }
}
