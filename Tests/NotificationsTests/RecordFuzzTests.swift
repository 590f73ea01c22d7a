import JSON
import TestSupport
import Testing

@testable import Notifications

/// Everything that is read out of records, under random input.
@Suite struct RecordFuzzTests {
  // MARK: Requests

  /// A record as text: a line for each header, an empty line, the value; the key is the header `(key)`.
  private static func text(_ fixture: RuleCase) -> [UInt8] {
    var headers: [String: String] = ["apns-topic": "com.example.shop", "target": "device:\(RequestFixture.token)"]
    for (name, value) in fixture.headers { headers[name] = value }
    return Array((headers.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)\n" }.joined() + "\n" + (fixture.value ?? "")).utf8)
  }

  private static let corpus: [[UInt8]] =
    (RequestRuleTests.headerRules + RequestRuleTests.payloadRules).map(text) + [
      Array("(key): user:ada\napns-topic: a.b\n\n{\"aps\":{\"alert\":\"x\"}}".utf8),
      Array("target: user:ada\napns-topic: a.b\noperation: remove\n\n{\"identifiers\":[\"a\",\"b\"]}".utf8),
      Array("target: user:ada\napns-topic: a.b\noperation: remove\napns-collapse-id: a\n\n".utf8),
    ]
  private static let tokens =
    RequestHeader.allCases.map { "\($0.name): " } + [
      "\n", "\n\n", ": ", "device:", "user:", "channel:", "{\"aps\":{\"alert\":\"x\"}}", "remove",
    ]
    + ["\"aps\":{", "\"badge\":", "\"sound\":", "\"alert\":", "\"content-available\":1", "\"category\":\"a\\\"b\"", "\"identifiers\":["]

  /// Calls `body` with the record that a text stands for; its pieces lie in blocks of their own.
  private static func withRecord<R>(_ text: UnsafeRawBufferPointer, _ body: (RequestRecord) throws -> R) rethrows -> R {
    var headers = RequestHeaders()
    var key = UnsafeRawBufferPointer.empty
    var rest = text[...]
    while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
      let line = rest[rest.startIndex..<end]
      rest = rest[(end + 1)...]
      if line.isEmpty { break }
      let colon = line.firstIndex(of: UInt8(ascii: ":")) ?? line.endIndex
      let name = UnsafeRawBufferPointer(rebasing: line[line.startIndex..<colon])
      let value = UnsafeRawBufferPointer(rebasing: line[min(colon + 2, line.endIndex)...])
      if name.equals("(key)") { key = value } else { headers.take(name: name, value: value) }
    }
    return try body(
      RequestRecord(
        key: key, value: UnsafeRawBufferPointer(rebasing: rest), headers: headers, topic: ("notifications.requests" as StaticString).bytes,
        position: SourcePosition(partition: 3, offset: 42, timestamp: 1_700_000_000_123)))
  }

  @Test func aRequestIsTakenWholeOrItsFieldAndRuleAreNamed() {
    var writer = EventWriter(source: "/carillon/test", worker: "w", requestsTopic: "notifications.requests")
    let failures = Fuzz("requests", corpus: Self.corpus, tokens: Self.tokens, inputs: 3_000).run { text, _ in
      try Self.withRecord(text) { record in
        switch RequestView.read(record, limits: RequestLimits()) {
        case .rejected(let rejection, let envelope):
          if rejection.field.description.isEmpty || rejection.rule.description.isEmpty { return "\(rejection) names no field or no rule" }
          if let offset = rejection.offset, offset < 0 || offset > text.count { return "\(rejection) lies outside" }
          var facts = EventFacts(.rejected, of: envelope)
          facts.details = .rejected(rejection)
          return Self.told(facts, &writer)
        case .accepted(let request):
          return try Self.carried(request) ?? Self.told(EventFacts(.addressed, of: request), &writer)
        }
      }
    }
    #expect(failures.isEmpty, "\(failures)")
  }

  /// What an event says is read as it was told; nil.
  private static func told(_ facts: EventFacts, _ writer: inout EventWriter) -> String? {
    writer.write(facts, at: 1_700_000_000_000)
    var headers: [(name: String, value: String)] = []
    writer.forEachHeader { headers.append(($0.rawValue, $1.text)) }
    do {
      let event = try writer.withValue { try Event(headers: headers, value: $0) }
      if event.id != facts.id || event.type != facts.type || event.revision != facts.revision ?? facts.source.map({ Revision($0) }) {
        return "the event says something else: \(event)"
      }
      return nil
    } catch { return "the event is none: \(error)" }
  }

  /// Every entry that a request becomes keeps what the request says; nil.
  private static func carried(_ request: RequestView) throws -> String? {
    var count = 0
    var fault: String?
    try request.forEachIdentifier { identifier in
      count += 1
      var buffer = ByteBuffer()
      let entry =
        request.operation == .remove
        ? DeliveryEntry(removing: identifier, by: request, id: request.envelope.id) : DeliveryEntry(request)
      try entry.append(to: &buffer)
      buffer.withUnsafeBytes { bytes in
        guard let view = DeliveryEntryView(bytes) else { return fault = "the entry cannot be read" }
        if view.id != request.envelope.id || view.priority != request.priority || view.pushType != request.pushType
          || view.expiration != request.expiration || view.source != request.envelope.source || view.userHash != request.userHash
          || !view.payload.equals(request.payload) || !view.application.equals(request.application)
          || !view.trigger.equals(request.placeTrigger)
          || !view.withIdentifier({ $0.equals(identifier) })
        {
          fault = "the entry says something else than the request"
        }
        if encoded(view) != Array(bytes) { fault = "the entry is not written as it was read" }
        if DeliveryEntryView(kept: bytes)?.isPayloadIntact != true { fault = "the entry's checksums are wrong" }
        var frame = JSONWriter()
        ServerFrames.notify(
          view, revision: request.envelope.revision, delivery: 1, presentation: [.banner, .list], receipt: ("r" as StaticString).bytes,
          to: &frame)
        if request.operation == .notify {
          do {
            guard case .notify(let read) = try frame.withUnsafeBytes({ try ServerFrame($0) }) else { return fault = "no notify" }
            // White space around the whole payload is no part of its value.
            let isSpace: (UInt8) -> Bool = { [0x20, 0x09, 0x0A, 0x0D].contains($0) }
            let payload = view.payload.drop(while: isSpace).reversed().drop(while: isSpace).reversed()
            if read.id != view.id.description || !payload.elementsEqual(read.payload) { fault = "the frame says something else" }
          } catch { fault = "a device cannot read the frame: \(error)" }
        }
      }
    }
    if count != 1 { return "it has \(count) identifiers" }
    return fault
  }

  // MARK: Deliveries

  /// An entry's bytes, by the table of `DeliveryEntry`, written down a second time.
  private static func encoded(_ view: DeliveryEntryView) -> [UInt8] {
    func big(_ value: some FixedWidthInteger) -> [UInt8] { withUnsafeBytes(of: value.bigEndian, Array.init) }
    func short(_ field: UnsafeRawBufferPointer) -> [UInt8] { [UInt8(field.count)] + Array(field) }
    func long(_ field: UnsafeRawBufferPointer) -> [UInt8] { big(UInt16(field.count)) + Array(field) }
    var bytes: [UInt8] = []
    var id = ByteBuffer()
    view.id.append(to: &id)
    bytes += id.withUnsafeBytes(Array.init)
    let published = view.published == view.source.timestamp ? [] : big(view.published)
    bytes += [4 << 4 | view.kind.rawValue | (published.isEmpty ? 0 : 8), view.flags.rawValue, view.priority, view.pushType.rawValue]
    bytes += big(view.expiration) + big(view.source.partition) + big(view.source.offset) + big(view.source.timestamp) + big(view.userHash)
    bytes += big(UInt32(truncatingIfNeeded: StableHash.hash(view.payload)))
    let variable =
      short(view.collapseID) + short(view.application) + short(view.sourceTopic) + short(view.traceparent) + long(view.category)
      + long(view.trigger) + short(view.extensions) + long(view.attachments) + published
    let seed = bytes.withUnsafeBytes { StableHash.hash($0) }
    let checksum = UInt32(truncatingIfNeeded: variable.withUnsafeBytes { StableHash.hash($0, seed: seed) })
    return bytes + big(checksum) + variable + Array(view.payload)
  }

  /// The bytes without the two checksums, which a mutated entry keeps.
  private static func withoutChecksums(_ entry: some Collection<UInt8>) -> [UInt8] { Array(entry.prefix(56)) + entry.dropFirst(64) }

  @Test func anEntryThatIsReadIsWrittenAlike() throws {
    let corpus = [
      try DeliveryTests.encoded(), try DeliveryTests.encoded(["apns-collapse-id": nil, "trigger": nil], value: #"{"aps":{}}"#),
      try DeliveryTests.encoded(["target": "device:\(RequestFixture.token)", "traceparent": nil, "carillon-origin": nil]),
    ]
    let failures = Fuzz("entries", corpus: corpus).run { bytes, _ in
      guard let view = DeliveryEntryView(bytes) else { return nil }
      let encoded = Self.encoded(view)
      if Self.withoutChecksums(encoded) != Self.withoutChecksums(bytes) { return "it is not written as it was read" }
      let isIntact = DeliveryEntryView(kept: bytes)?.isPayloadIntact == true
      if isIntact != (encoded == Array(bytes)) { return "its checksums say that it is \(isIntact ? "intact" : "damaged")" }
      var receipt = ByteBuffer()
      ReceiptView.append(of: view, revision: Revision(timestamp: 1, partition: 2, offset: 3), deviceHash: 4, to: &receipt)
      return receipt.withUnsafeBytes { bytes -> String? in
        guard let read = ReceiptView(bytes) else { return "its receipt cannot be read" }
        let isRegistrable = view.category.count <= NotificationCategory.identifierBytes
        return read.id == view.id && read.source == view.source && read.userHash == view.userHash
          && read.traceparent.equals(view.traceparent)
          && (isRegistrable ? read.category.equals(view.category) : read.category.isEmpty) ? nil : "its receipt says something else"
      }
    }
    #expect(failures.isEmpty, "\(failures)")
  }

  @Test func aDeliveryRecordThatIsReadIsWrittenAlike() throws {
    let revision = Revision(timestamp: 5, partition: 6, offset: 7)
    var corpus: [[UInt8]] = []
    func add(_ body: (inout ByteBuffer) -> Void) {
      var buffer = ByteBuffer()
      body(&buffer)
      corpus.append(buffer.withUnsafeBytes(Array.init))
    }
    let entry = try DeliveryTests.encoded()
    let source = try entry.withUnsafeBytes { Revision(try #require(DeliveryEntryView($0)).source) }
    for revision in [revision, source] {
      add { buffer in
        entry.withUnsafeBytes { DeliveryRecord.append(encoded: $0, kind: .notify, revision: revision, generation: 9, to: &buffer) }
      }
    }
    add { DeliveryRecord.appendTakeover(of: 3, to: &$0) }
    let failures = Fuzz("delivery records", corpus: corpus).run { bytes, _ in
      guard let record = DeliveryRecord(bytes) else { return nil }
      var again = ByteBuffer()
      switch record.kind {
      case .notify, .remove:
        // Its bytes were changed.
        guard let entry = record.entry else { return nil }
        Self.encoded(entry).withUnsafeBytes {
          DeliveryRecord.append(encoded: $0, kind: entry.kind, revision: record.revision, generation: record.generation, to: &again)
        }
        return again.withUnsafeBytes(Array.init) == Array(bytes) ? nil : "it is not written as it was read"
      case .takeover:
        DeliveryRecord.appendTakeover(of: record.generation, to: &again)
        // A takeover has no revision, and nothing is made of one.
        if record.headCount != again.withUnsafeBytes({ $0.count }) { return nil }
        return again.withUnsafeBytes(Array.init) == Array(bytes.prefix(again.count)) ? nil : "its head is not written as it was read"
      }
    }
    #expect(failures.isEmpty, "\(failures)")
  }

  @Test func aReceiptThatIsReadIsWrittenAlike() throws {
    let entry = try DeliveryTests.encoded()
    var buffer = ByteBuffer()
    entry.withUnsafeBytes { bytes in
      guard let view = DeliveryEntryView(bytes) else { return }
      let category = DeviceTests.categories[0]
      ReceiptView.append(
        of: view, revision: Revision(timestamp: 1, partition: 2, offset: 3), deviceHash: 4, category: category, to: &buffer)
    }
    let failures = Fuzz("receipts", corpus: [buffer.withUnsafeBytes(Array.init)]).run { bytes, _ in
      guard let view = ReceiptView(bytes) else { return nil }
      let fields = [view.collapseID, view.application, view.sourceTopic, view.traceparent, view.category]
      // 73 bytes before the first field, four lengths of one byte and one of two.
      let end = fields.reduce(73 + 4 + 2) { $0 + $1.count }
      // Behind that a receipt of this version has the category as it was: a byte, a count, and four bytes for each action.
      let category = view.delivered == nil ? 0 : end + 1 < bytes.count ? 2 + 4 * Int(bytes[end + 1]) : 2
      return end + category == bytes.count ? nil : "its fields are not all of it"
    }
    #expect(failures.isEmpty, "\(failures)")
  }

  // MARK: What else records hold

  @Test func aRegistrationThatIsReadIsWrittenAlike() {
    let corpus = [
      JSONWriter.text { DeviceTests.registration.write(to: &$0) },
      JSONWriter.text { FrameTests.hello.registration(since: 5).write(to: &$0) },
      #"{"device":"\#(RequestFixture.token)","application":"a.b","since":1700000000000}"#,
    ].map { Array($0.utf8) }
    let failures = Fuzz("registrations", corpus: corpus, tokens: FrameFuzzTests.tokens).run { bytes, _ in
      do throws(FieldError) {
        let registration = try Registration(json: bytes)
        let text = JSONWriter.text { registration.write(to: &$0) }
        guard try withText(text, { bytes throws(FieldError) in try Registration(json: bytes) }) == registration else {
          return "it is not read as it was written: \(text)"
        }
      } catch {
        if error.rule.isEmpty { return "the error names no rule" }
      }
      return nil
    }
    #expect(failures.isEmpty, "\(failures)")
  }

  /// An event as text: a line for each header, an empty line, the value.
  @Test func anEventOrADeadLetterIsReadOrRefused() {
    let headers = "ce_specversion: 1.0\nce_id: 00112233445566778899aabbccddeeff\nce_type: carillon.delivered.v1\nce_source: /carillon/c\n"
    let letter = "carillon-dead-letter-reason: BadTopic\ncarillon-dead-letter-topic: t\ncarillon-dead-letter-partition: 3\n"
    let value =
      #"{"identifier":"score","device":"aa","application":"a.b","user":"ada","source":{"topic":"t","partition":3,"offset":42,"timestamp":5},"revision":"0000018bcfe568000000000300000000000000ff","worker":"w","devices":3,"by":{"apnsId":"123e4567-e89b-12d3-a456-42665544000a"},"at":"2026-11-21T10:19:43.007Z"}"#
    let corpus = [
      headers + "ce_subject: 123e4567-e89b-12d3-a456-42665544000a\nce_time: 2026-11-21T10:19:43.007Z\n\n" + value,
      letter + "carillon-dead-letter-offset: 42\ncarillon-dead-letter-tries: 2\ncarillon-dead-letter-timestamp: 7\n\n" + value,
    ].map { Array($0.utf8) }
    let names = EventHeader.allCases.map { "\($0.rawValue): " } + DeadLetterHeader.allCases.map { "\($0.rawValue): " }
    let failures = Fuzz("events", corpus: corpus, tokens: names + ["\n", "\n\n", "\"device\":", "\"source\":{"]).run { text, _ in
      var headers: [(name: String, value: String)] = []
      var rest = text[...]
      while let end = rest.firstIndex(of: UInt8(ascii: "\n")), end > rest.startIndex {
        let line = String(decoding: rest[rest.startIndex..<end], as: UTF8.self)
        let parts = line.split(separator: ": ", maxSplits: 1, omittingEmptySubsequences: false)
        headers.append((String(parts[0]), parts.count > 1 ? String(parts[1]) : ""))
        rest = rest[(end + 1)...]
      }
      if let letter = DeadLetter(headers: headers) {
        if DeadLetter(headers: letter.headers) != letter { return "the letter is not read as it was written" }
      }
      do throws(FieldError) {
        let event = try Event(headers: headers, value: UnsafeRawBufferPointer(rebasing: rest.dropFirst()))
        if event.eventID.isEmpty && !headers.contains(where: { $0.name == "ce_id" && $0.value.isEmpty }) { return "it has no id" }
      } catch {
        if error.rule.isEmpty { return "the error names no rule" }
      }
      return nil
    }
    #expect(failures.isEmpty, "\(failures)")
  }

  @Test func textsOfIdentitiesAndTimesAreWrittenAsTheyWereRead() {
    let corpus = [
      "123e4567-e89b-12d3-a456-42665544000a", RequestFixture.token, "0000018bcfe568000000000300000000000000ff", "2026-11-21T10:19:43.007Z",
      "2026-02-29T23:59:60.123456+23:59", "1969-12-31t00:00:00-00:01", DeliveryTests.trace,
    ].map { Array($0.utf8) }
    let failures = Fuzz("identities", corpus: corpus, tokens: ["-", ":", "T", "Z", "+00:00", "0", "f"]).run { bytes, _ in
      let text = bytes.text
      if let id = NotificationID(text: bytes), id.description != text.lowercased() { return "another id: \(id)" }
      if let token = DeviceToken(bytes), token.text != text.lowercased() { return "another token: \(token.text)" }
      if let revision = Revision(text: bytes), revision.description != text { return "another revision: \(revision)" }
      if let time = Timestamp.parse(bytes), (0...Timestamp.latest).contains(time), Timestamp.parse(Timestamp.text(time)) != time {
        return "another time: \(time)"
      }
      if let trace = Optional(TraceParent.carried(bytes)), !trace.isEmpty, !trace.equals(bytes) { return "another trace" }
      return nil
    }
    #expect(failures.isEmpty, "\(failures)")
  }
}

/// Calls `body` with the bytes of a text, and passes its error on with its type.
func withText<R, E: Error>(_ text: String, _ body: (UnsafeRawBufferPointer) throws(E) -> R) throws(E) -> R {
  let bytes = Array(text.utf8)
  let outcome: Result<R, E> = bytes.withUnsafeBytes { bytes in
    do throws(E) { return .success(try body(bytes)) } catch { return .failure(error) }
  }
  return try outcome.get()
}
