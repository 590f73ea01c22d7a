import Glibc
import Testing

@testable import Notifications

/// How often the tests with random input go round; set CARILLON_FUZZ_ITERATIONS for more.
let fuzzIterations = getenv("CARILLON_FUZZ_ITERATIONS").flatMap { Int(String(cString: $0)) } ?? 5_000

@Suite struct DeliveryTests {
  static let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

  /// An entry with every field, and its bytes.
  static func encoded(_ headers: [String: String?] = [:], value: String? = nil) throws -> [UInt8] {
    let all: [String: String?] = [
      "apns-id": "123e4567-e89b-12d3-a456-42665544000a", "apns-collapse-id": "score", "apns-priority": "5",
      "apns-expiration": "1700000500", "target": "user:ada", "traceparent": trace,
      "trigger": #"{"type":"location","region":{"identifier":"a","latitude":9,"longitude":0,"radius":5}}"#,
      "carillon-origin": #"{"cluster":"c","topic":"old","partition":1,"offset":2,"timestamp":1700000000000,"why":"replay"}"#,
    ]
    let fixture = RequestFixture.valid(
      all.merging(headers) { $1 }, value: value ?? #"{"aps":{"alert":"Hello","category":"INV\u0049TE","mutable-content":1}}"#)
    let view = try #require(fixture.read().view)
    var buffer = ByteBuffer(capacity: 64)
    try DeliveryEntry(view).append(to: &buffer)
    return buffer.withUnsafeBytes { Array($0) }
  }

  @Test func anEntryKeepsEveryField() throws {
    let bytes = try Self.encoded()
    try bytes.withUnsafeBytes { bytes in
      let entry = try #require(DeliveryEntryView(bytes))
      #expect(
        bytes.prefix(16).elementsEqual([0x12, 0x3E, 0x45, 0x67, 0xE8, 0x9B, 0x12, 0xD3, 0xA4, 0x56, 0x42, 0x66, 0x55, 0x44, 0, 0x0A]))
      #expect(entry.id.description == "123e4567-e89b-12d3-a456-42665544000a")
      #expect(entry.kind == .notify)
      #expect(entry.flags == [.alert, .mutableContent])
      #expect(entry.priority == 5)
      #expect(entry.pushType == .alert)
      #expect(entry.expiration == 1_700_000_500)
      #expect(entry.source == SourcePosition(partition: 1, offset: 2, timestamp: 1_700_000_000_000))
      #expect(entry.userHash == StableHash.user("ada"))
      #expect(entry.collapseID.text == "score")
      #expect(entry.application.text == "com.example.shop")
      #expect(entry.sourceTopic.text == "old")
      #expect(entry.traceparent.text == Self.trace)
      #expect(entry.category.text == "INVITE")
      #expect(entry.trigger.text.hasPrefix(#"{"type":"location""#))
      #expect(entry.payload.text == #"{"aps":{"alert":"Hello","category":"INV\u0049TE","mutable-content":1}}"#)
      #expect(entry.withIdentifier { $0.text } == "score")
    }
  }

  @Test func whatIsAbsentStaysAbsent() throws {
    let bytes = try Self.encoded(
      ["apns-collapse-id": nil, "trigger": nil, "carillon-origin": nil, "traceparent": nil, "target": "device:\(RequestFixture.token)"],
      value: #"{"aps":{}}"#)
    try bytes.withUnsafeBytes { bytes in
      let entry = try #require(DeliveryEntryView(bytes))
      #expect(entry.collapseID.isEmpty && entry.sourceTopic.isEmpty && entry.traceparent.isEmpty)
      #expect(entry.category.isEmpty && entry.trigger.isEmpty)
      #expect(entry.userHash == 0)
      #expect(entry.withIdentifier { $0.text } == entry.id.description)
    }
  }

  @Test func aRemovalIsAnEntryOfItsIdentifier() throws {
    let fixture = RequestFixture.valid(["operation": "remove"], value: #"{"identifiers":["a"]}"#)
    let view = try #require(fixture.read().view)
    var buffer = ByteBuffer()
    var found: [String] = []
    try view.forEachIdentifier { identifier in
      buffer.reset()
      try DeliveryEntry(removing: identifier, by: view, id: view.envelope.id.derived(identifier)).append(to: &buffer)
      buffer.withUnsafeBytes { bytes in
        guard let entry = DeliveryEntryView(bytes) else { return }
        #expect(entry.kind == .remove)
        #expect(entry.payload.isEmpty)
        found.append(entry.collapseID.text)
      }
    }
    #expect(found == ["a"])
  }

  @Test func aFieldThatDoesNotFitLeavesTheBufferAsItWas() throws {
    let fixture = RequestFixture.valid()
    var entry = DeliveryEntry(try #require(fixture.read().view))
    let long = [UInt8](repeating: 0x61, count: 256)
    long.withUnsafeBytes { long in
      entry.identifier = long
      var buffer = ByteBuffer()
      buffer.append("before")
      #expect(throws: RecordCodingError.self) { try entry.append(to: &buffer) }
      #expect(throws: RecordCodingError.self) {
        try DeliveryRecord.append(entry, revision: Revision(timestamp: 1, partition: 1, offset: 1), generation: 1, to: &buffer)
      }
      #expect(buffer.withUnsafeBytes { $0.text } == "before")
    }
  }

  @Test func aDeliveryRecordKeepsItsParts() throws {
    let revision = Revision(timestamp: 5, partition: 6, offset: 7)
    let entry = try Self.encoded()
    var buffer = ByteBuffer()
    entry.withUnsafeBytes { DeliveryRecord.append(encoded: $0, kind: .notify, revision: revision, generation: 99, to: &buffer) }
    try buffer.withUnsafeBytes { bytes in
      let record = try #require(DeliveryRecord(bytes))
      #expect(record.kind == .notify && record.generation == 99 && record.revision == revision)
      #expect(record.entry?.collapseID.text == "score")
    }
    buffer.reset()
    DeliveryRecord.appendTakeover(of: 3, to: &buffer)
    #expect(buffer.withUnsafeBytes { DeliveryRecord($0)?.kind } == .takeover)
    buffer.reset()
    DeliveryRecord.appendReregistered(generation: 4, to: &buffer)
    #expect(buffer.withUnsafeBytes { DeliveryRecord($0)?.generation } == 4)
  }

  @Test func aReceiptKeepsItsParts() throws {
    let bytes = try Self.encoded()
    var buffer = ByteBuffer()
    try bytes.withUnsafeBytes { bytes in
      let entry = try #require(DeliveryEntryView(bytes))
      ReceiptView.append(of: entry, revision: Revision(entry.source), deviceHash: 77, to: &buffer)
      try buffer.withUnsafeBytes { bytes in
        let receipt = try #require(ReceiptView(bytes))
        #expect(receipt.id == entry.id && receipt.source == entry.source && receipt.revision == Revision(entry.source))
        #expect(receipt.userHash == entry.userHash && receipt.deviceHash == 77)
        #expect(receipt.collapseID.text == "score" && receipt.application.text == "com.example.shop")
        #expect(receipt.sourceTopic.text == "old" && receipt.category.text == "INVITE")
        #expect(ReceiptView(UnsafeRawBufferPointer(rebasing: bytes.dropLast())) == nil)
      }
    }
  }

  /// Cut, flipped and random bytes are read or refused; they never trap, and no field lies outside.
  @Test func garbageNeverTraps() throws {
    var random = SeededGenerator(seed: 2_026)
    let entry = try Self.encoded()
    let record = [1] + [UInt8](repeating: 0, count: 28) + entry
    var read = 0
    for _ in 0..<fuzzIterations {
      var bytes = Bool.random(using: &random) ? entry : record
      switch Int.random(in: 0..<3, using: &random) {
      case 0: bytes = Array(bytes.prefix(.random(in: 0...bytes.count, using: &random)))
      case 1:
        for _ in 0..<Int.random(in: 1...4, using: &random) {
          bytes[.random(in: 0..<bytes.count, using: &random)] = .random(in: 0...255, using: &random)
        }
      default: bytes = (0..<Int.random(in: 0...200, using: &random)).map { _ in .random(in: 0...255, using: &random) }
      }
      bytes.withUnsafeBytes { bytes in
        for entry in [DeliveryEntryView(bytes), DeliveryRecord(bytes)?.entry] {
          guard let entry else { continue }
          read += 1
          let fields = [
            entry.collapseID, entry.application, entry.sourceTopic, entry.traceparent, entry.category, entry.trigger, entry.payload,
          ]
          #expect(fields.reduce(DeliveryEntry.fixedBytes) { $0 + $1.count } <= bytes.count)
        }
        _ = ReceiptView(bytes)
      }
    }
    #expect(read > 0)
  }

  @Test func randomRequestsNeverTrap() {
    var random = SeededGenerator(seed: 11)
    let seeds = RequestRuleTests.payloadRules.compactMap(\.value).filter { $0.utf8.count < 500 }
    let values = RequestRuleTests.headerRules.flatMap { $0.headers.values.compactMap { $0 } }
    for _ in 0..<fuzzIterations {
      var payload = Array((seeds.randomElement(using: &random) ?? "").utf8)
      if !payload.isEmpty { payload[.random(in: 0..<payload.count, using: &random)] = .random(in: 0...255, using: &random) }
      payload.withUnsafeBytes { payload in
        var headers = RequestHeaders()
        var kept: [ContiguousArray<CChar>] = []
        for header in RequestHeader.allCases where Int.random(in: 0..<4, using: &random) == 0 || header == .topic || header == .target {
          let value = header == .topic ? "a.b" : header == .target ? "user:ada" : values.randomElement(using: &random) ?? ""
          kept.append(ContiguousArray(value.utf8CString))
          kept[kept.count - 1].withUnsafeBytes { bytes in
            headers.take(name: header.name.bytes, value: UnsafeRawBufferPointer(rebasing: bytes.dropLast()))
          }
        }
        let record = RequestRecord(
          key: .none, value: payload, headers: headers, topic: .none, position: SourcePosition(partition: 0, offset: 0, timestamp: 0))
        withExtendedLifetime(kept) { _ = RequestView.read(record, limits: RequestLimits()) }
      }
    }
  }
}
