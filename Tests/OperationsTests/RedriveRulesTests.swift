import Notifications
import Testing

@testable import Operations

/// Which letters are written again, and as which records.
@Suite struct RedriveRulesTests {
  private static let id = "6f0c1a2e-0a4b-4c8e-9d52-3f6f6a9b1c11"
  private static let now: Int64 = 1_700_000_100_000
  private static let payload = #"{"aps":{"alert":"x"}}"#

  /// What a letter's record has beside what a worker adds.
  private static func record(_ headers: [(String, String)], key: String? = "user:ada", _ value: String? = payload) -> StoredRecord {
    StoredRecord(
      key: key.map { Array($0.utf8) }, value: value.map { Array($0.utf8) }, headers: headers.map { StoredRecord.Header($0.0, $0.1) })
  }

  private static func facts(
    topic: String = "notifications.requests", partition: Int32 = 1, error: String? = nil, reason: String = "BadTopic"
  ) -> LetterFacts {
    let source = SourceCoordinates(topic: topic, partition: partition, offset: 42, timestamp: 1_700_000_000_000)
    var letter = DeadLetter(poison: error ?? "", tries: 1, source: source)
    (letter.reason, letter.error) = (reason, error)
    return LetterFacts(
      place: RecordPlace(partition: 0, offset: 1), time: 1, letter: letter, first: source, hasOrigin: false,
      id: NotificationID(high: 0, low: 0), isDerivedID: false, application: nil, target: nil)
  }

  /// Rules where the requests have three partitions, with so many records each since a while before the letters were written.
  private static func rules(
    _ edits: RequestEdits = RequestEdits(), isForced: Bool = false,
    log: RequestsLog = RequestsLog(offsets: 0..<100, since: 1_699_999_000_000), now: Int64 = now
  ) -> RedriveRules {
    var rules = RequestRules()
    rules.cluster = "here"
    return RedriveRules(
      rules: rules, edits: edits, isForced: isForced, logs: [0: log, 1: log, 2: log], now: now)
  }

  private static func edits(_ set: [(Name, String)] = [], _ removed: [Name] = [], isNew: Bool = false) throws -> RequestEdits {
    try RequestEdits(set: set.map { (name: $0.0, value: $0.1) }, removed: removed, isNew: isNew)
  }

  private static func refusal(_ body: () throws -> Any) -> RedriveRefusal? {
    do {
      _ = try body()
      return nil
    } catch {
      return error as? RedriveRefusal
    }
  }

  private static let sound = [("target", "user:ada"), ("apns-topic", "com.example"), ("apns-id", id)]
  private static let origin =
    #"{"cluster":"here","topic":"notifications.requests","partition":1,"offset":5,"timestamp":1699999999000,"why":"replay"}"#

  @Test func theHeadersOfALetterAreTakenOffAndTheRestStays() throws {
    let added = DeadLetterHeader.allCases.map { ($0.rawValue, "x") } + LetterStateHeader.allCases.map { ($0.rawValue, "y") }
    let request = try Self.rules().request(Self.facts(), Self.record(Self.sound + added + [("mark", "7")]))
    #expect(request.record.headers.map(\.key) == ["target", "apns-topic", "apns-id", "mark"])
    #expect(request.record.key == Array("user:ada".utf8) && request.record.value == Array(Self.payload.utf8))
    #expect(request.partition == 1 && request.id?.description == Self.id && !request.isExpired)
    #expect(request.origin == Self.facts().letter.source)
  }

  @Test func theFirstOriginStays() throws {
    let request = try Self.rules().request(Self.facts(), Self.record([("carillon-origin", Self.origin), ("apns-topic", "a")]))
    let first = SourceCoordinates(topic: "notifications.requests", partition: 1, offset: 5, timestamp: 1_699_999_999_000)
    #expect(request.origin == first && request.partition == 1)
    #expect(request.record.headers.map(\.key) == ["apns-topic"])
    let derived = first.topic.withBytes { NotificationID.derived(topic: $0, source: first.position) }
    #expect(request.id == derived)
    let removed = try Self.edits([], ["carillon-origin"])
    #expect(
      Self.refusal { try Self.rules(removed).request(Self.facts(), Self.record(Self.sound + [("carillon-origin", Self.origin)])) }
        == .keepsOrigin)
    // One that is none is taken off when that is said; then it has its own place.
    let broken = Self.record(Self.sound + [("carillon-origin", "nowhere")])
    guard
      case .breaksRule("BadRequestParams", field: "carillon-origin", _) = Self.refusal({ try Self.rules().request(Self.facts(), broken) })
    else {
      Issue.record("a broken origin is not taken for none")
      return
    }
    #expect(try Self.rules(removed).request(Self.facts(), broken).origin == Self.facts().letter.source)
  }

  /// The workers have rejected it, and would again: nothing of it is taken over.
  @Test(arguments: [
    origin.replacing("here", with: "other"), origin.replacing("notifications.", with: "first."),
    origin.replacing(#""partition":1"#, with: #""partition":2"#), origin.replacing(#""offset":5"#, with: #""offset":42"#),
    origin.replacing("1699999999000", with: "9223372036854775807"),
  ])
  func `an origin that does not count is named before anything is written`(_ origin: String) throws {
    let record = Self.record(Self.sound + [("carillon-origin", origin)])
    guard
      case .breaksRule("BadRequestParams", field: "carillon-origin", _) = Self.refusal({ try Self.rules().request(Self.facts(), record) })
    else {
      Issue.record("the workers would reject it")
      return
    }
    let removed = try Self.edits([], ["carillon-origin"])
    #expect(try Self.rules(removed).request(Self.facts(), record).origin == Self.facts().letter.source)
    #expect(try Self.rules(Self.edits(isNew: true)).request(Self.facts(), record).origin == nil)
  }

  /// The letter says that its record lay at offset 42 of partition 1.
  @Test func `a place that would be no origin is named before anything is written`() throws {
    func fault(_ log: RequestsLog, partition: Int32 = 1, now: Int64 = Self.now) -> RedriveRefusal? {
      Self.refusal {
        try Self.rules(log: log, now: now).request(Self.facts(partition: partition), Self.record(Self.sound))
      }
    }
    let time: Int64 = 1_700_000_000_000
    #expect(fault(RequestsLog(offsets: 0..<43, since: time)) == nil)
    #expect(fault(RequestsLog(offsets: 0..<100), partition: 3) == .placeIsNoOrigin(.noPartition))
    #expect(fault(RequestsLog(offsets: 0..<42)) == .placeIsNoOrigin(.topicMadeAgain), "nothing lies there yet")
    #expect(fault(RequestsLog(offsets: 0..<0)) == .placeIsNoOrigin(.topicMadeAgain))
    #expect(fault(RequestsLog(offsets: 0..<100, since: time + 300_001)) == .placeIsNoOrigin(.topicMadeAgain), "another record lies there")
    #expect(fault(RequestsLog(offsets: 0..<100, since: time + 300_000)) == nil, "the clocks of two brokers")
    #expect(fault(RequestsLog(offsets: 50..<100, since: time + 1_000_000)) == nil, "it is deleted by now")
    #expect(fault(RequestsLog(offsets: 0..<100), now: time - 300_000) == nil)
    #expect(fault(RequestsLog(offsets: 0..<100), now: time - 300_001) == .placeIsNoOrigin(.inFuture))
    let new = try Self.rules(Self.edits(isNew: true), log: RequestsLog(offsets: 0..<0)).request(Self.facts(), Self.record(Self.sound))
    #expect(new.origin == nil && new.partition == 1)
  }

  @Test func `a target that only looks alike is another request`() throws {
    let edits = try Self.edits([("apns-topic", "com.example")], ["target"])
    let record = Self.record([("target", "user:Kim"), ("apns-id", Self.id)], key: "user:\u{212A}im")
    #expect(Self.refusal { try Self.rules(edits).request(Self.facts(), record) } == .otherRequest("target"))
  }

  @Test func `of two headers that only look alike one is changed`() throws {
    let edits = try Self.edits([("é", "new")])
    let record = Self.record(Self.sound + [("e\u{301}", "kept"), ("é", "old")])
    let headers = try Self.rules(edits).request(Self.facts(), record).record.headers.suffix(2)
    #expect(headers.map(\.key) == ["e\u{301}", "é"] && headers.map(\.value) == [Array("kept".utf8), Array("new".utf8)])
  }

  @Test func whatWouldBeRejectedAgainIsLeft() throws {
    let record = Self.record([("target", "user:ada"), ("apns-id", Self.id)])
    guard case .breaksRule("MissingTopic", field: "apns-topic", _) = Self.refusal({ try Self.rules().request(Self.facts(), record) }) else {
      Issue.record("it has no topic")
      return
    }
    let mended = try Self.rules(Self.edits([("apns-topic", "com.example")])).request(Self.facts(), record)
    #expect(mended.record.headers.last?.key == "apns-topic" && mended.record.headers.count == 3)
  }

  @Test func `a header is mended whatever the case of its name`() throws {
    let record = Self.record([
      ("Target", "user:ada"), ("Apns-Topic", "a b"), ("APNS-ID", Self.id), ("Apns-Priority", "7"), ("Carillon-Origin", Self.origin),
    ])
    let edits = try Self.edits([("apns-topic", "com.example")], ["apns-priority"])
    let request = try Self.rules(edits).request(Self.facts(), record)
    #expect(request.record.headers.map(\.key) == ["Target", "apns-topic", "APNS-ID"])
    #expect(request.origin?.position.offset == 5 && request.id?.description == Self.id)
    #expect(throws: RequestEdits.Mistake.origin) { try Self.edits([("Carillon-Origin", "x")], isNew: true) }
    #expect(throws: RequestEdits.Mistake.otherRequest("Apns-Id")) { try Self.edits([("Apns-Id", Self.id)]) }
    #expect(throws: RequestEdits.Mistake.setAndRemoved("apns-topic")) { try Self.edits([("apns-topic", "a")], ["Apns-Topic"]) }
  }

  @Test func ofAHeaderThatStandsTwiceOneIsLeft() throws {
    let twice = [("apns-topic", "a"), ("mark", "1"), ("apns-topic", "b"), ("target", "user:ada")]
    let request = try Self.rules(Self.edits([("apns-topic", "c")])).request(Self.facts(), Self.record(twice))
    #expect(request.record.headers.map(\.key) == ["apns-topic", "mark", "target"])
    #expect(request.record.headers[0].value == Array("c".utf8))
  }

  @Test func anotherIDOrTargetNeedsToBeMeant() throws {
    #expect(throws: RequestEdits.Mistake.otherRequest("target")) { try Self.edits([("target", "user:eve")]) }
    #expect(throws: RequestEdits.Mistake.otherRequest("apns-id")) { try Self.edits([("apns-id", Self.id)]) }
    #expect(throws: RequestEdits.Mistake.origin) { try Self.edits([("carillon-origin", "x")], isNew: true) }
    #expect(throws: RequestEdits.Mistake.ofLetter("carillon-dead-letter-x")) { try Self.edits([], ["carillon-dead-letter-x"]) }
    #expect(throws: RequestEdits.Mistake.setAndRemoved("mark")) { try Self.edits([("mark", "1")], ["mark"]) }
    // A valid id that is taken off would be another one, an invalid one is none.
    let withoutID = try Self.edits([], ["apns-id"])
    #expect(Self.refusal { try Self.rules(withoutID).request(Self.facts(), Self.record(Self.sound)) } == .otherRequest("apns-id"))
    let invalid = [("target", "user:ada"), ("apns-topic", "a"), ("apns-id", "NONE")]
    let mended = try Self.rules(withoutID).request(Self.facts(), Self.record(invalid))
    #expect(mended.id != nil && mended.origin != nil)
    // Without the header the key says whom it is for.
    let withoutTarget = try Self.edits([], ["target"])
    #expect(throws: Never.self) { try Self.rules(withoutTarget).request(Self.facts(), Self.record(Self.sound)) }
    #expect(
      Self.refusal { try Self.rules(withoutTarget).request(Self.facts(), Self.record(Self.sound, key: "user:eve")) }
        == .otherRequest("target"))
  }

  @Test func whatBecomesNewHasNoOriginAndItsOwnKey() throws {
    let record = Self.record(Self.sound + [("carillon-origin", Self.origin)])
    let same = try Self.rules(Self.edits(isNew: true)).request(Self.facts(), record)
    #expect(same.origin == nil && same.partition == 1 && same.id?.description == Self.id)
    let edits = try Self.edits([("target", "user:eve"), ("apns-id", "123E4567-e89b-12d3-a456-42665544000a")], isNew: true)
    let other = try Self.rules(edits).request(Self.facts(), record)
    #expect(other.record.key == Array("user:eve".utf8) && other.partition == nil)
    #expect(other.id?.description == "123e4567-e89b-12d3-a456-42665544000a")
    let derived = try Self.rules(Self.edits([], ["apns-id"], isNew: true)).request(Self.facts(), record)
    #expect(derived.id == nil && derived.origin == nil)
  }

  @Test func whatEndedWorkersAndWhatIsNoRequestIsLeft() {
    let deadly = Self.facts(error: DeadLetter.workersEnded, reason: "Poison")
    #expect(Self.refusal { try Self.rules().check(deadly) } == .endsWorkers)
    #expect(Self.refusal { try Self.rules(isForced: true).check(deadly) } == nil)
    #expect(Self.refusal { try Self.rules().check(Self.facts(topic: "notifications.devices")) } == .ofTopic("notifications.devices"))
    #expect(Self.refusal { try Self.rules().check(Self.facts()) } == nil)
  }

  @Test func whatHasExpiredSaysSoAndWhatIsTooLargeIsLeft() throws {
    let expired = try Self.rules().request(Self.facts(), Self.record(Self.sound + [("apns-expiration", "1700000099")]))
    #expect(expired.isExpired)
    let live = try Self.rules().request(
      Self.facts(), Self.record(Self.sound + [("apns-expiration", "1700000101"), ("apns-collapse-id", "a")]))
    #expect(!live.isExpired && live.partition == 1)
    let large = Self.record(Self.sound + [("more", String(repeating: "x", count: 1_047_600))])
    guard case .tooLarge = Self.refusal({ try Self.rules().request(Self.facts(), large) }) else {
      Issue.record("Kafka would refuse it")
      return
    }
    #expect(throws: Never.self) { try Self.rules(Self.edits([], ["more"])).request(Self.facts(), large) }
  }

  @Test func namesAndValuesKeepTheirBytes() throws {
    var record = Self.record(Self.sound)
    record.headers.append(.init("mark", ""))
    record.headers[3].name = [CChar(bitPattern: 0xFF), CChar(bitPattern: 0xFE), 0]
    record.headers[3].value = [0xFF, 0]
    record.headers.append(.init("nothing", ""))
    record.headers[4].value = nil
    let request = try Self.rules(Self.edits([("apns-priority", "5")])).request(Self.facts(), record)
    #expect(request.record.headers[3].name == [CChar(bitPattern: 0xFF), CChar(bitPattern: 0xFE), 0])
    #expect(request.record.headers[3].value == [0xFF, 0] && request.record.headers[4].value == nil)
  }
}

extension String {
  func withBytes<R>(_ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R {
    var text = self
    return try text.withUTF8 { try body(UnsafeRawBufferPointer($0)) }
  }
}

extension SourcePosition {
  fileprivate static var zero: SourcePosition { SourcePosition(partition: 0, offset: 0, timestamp: 0) }
}
