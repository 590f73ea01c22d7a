import Testing

@testable import Notifications

@Suite struct DeliveryTests {
  static let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

  private static func origin(_ why: String, timestamp: Int64 = 1_700_000_000_000) -> String {
    #"{"cluster":"c","topic":"notifications.requests","partition":3,"offset":2,"timestamp":\#(timestamp),"why":"\#(why)"}"#
  }

  /// An entry with every field, and its bytes.
  static func encoded(_ headers: [String: String?] = [:], value: String? = nil) throws -> [UInt8] {
    let all: [String: String?] = [
      "apns-id": "123e4567-e89b-12d3-a456-42665544000a", "apns-collapse-id": "score", "apns-priority": "5",
      "apns-expiration": "1700000500", "target": "user:ada", "traceparent": trace,
      "trigger": #"{"type":"location","region":{"identifier":"a","latitude":9,"longitude":0,"radius":5}}"#,
      "carillon-origin": origin("replay"),
    ]
    let fixture = RequestFixture.valid(
      all.merging(headers) { $1 }, value: value ?? #"{"aps":{"alert":"Hello","category":"INV\u0049TE","mutable-content":1}}"#)
    let view = try #require(fixture.read().view)
    var entry = DeliveryEntry(view)
    // As entries had it that came from another topic first.
    if view.envelope.origin != nil { entry.sourceTopic = fixture.bytes("old") }
    var buffer = ByteBuffer(capacity: 64)
    try entry.append(to: &buffer)
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
      #expect(entry.flags == [.alert, .mutableContent, .isRedriven])
      #expect(entry.priority == 5)
      #expect(entry.pushType == .alert)
      #expect(entry.expiration == 1_700_000_500)
      #expect(entry.source == SourcePosition(partition: 3, offset: 2, timestamp: 1_700_000_000_000))
      #expect(entry.userHash == NameHash.user("ada"))
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

  /// What the extensions have left takes the place of the payload and of what was found in it; all else is the request's.
  @Test func anEntryThatExtensionsHaveChangedKeepsTheRest() throws {
    let published = try Self.encoded()
    let payload = Array(#"{"aps":{"alert":{"title":"Changed"},"badge":1,"category":"OTHER"}}"#.utf8)
    var states = ByteBuffer(capacity: 64)
    ExtensionStates.append(.modified, name: "mark", to: &states)
    ExtensionStates.append(.timedOut, name: String(repeating: "x", count: 30), to: &states)
    let attachments = AttachmentTests.field([AttachmentTests.photo])
    var changed = ByteBuffer(capacity: 64)
    try published.withUnsafeBytes { published in
      let entry = try #require(DeliveryEntryView(published))
      #expect(entry.extensions.isEmpty && entry.attachments.isEmpty)
      try payload.withUnsafeBytes { payload in
        try states.withUnsafeBytes { states in
          try attachments.withUnsafeBytes { attachments in
            try DeliveryEntry(entry, payload: payload, PayloadFacts(checking: payload), extensions: states, attachments: attachments)
              .append(to: &changed)
          }
        }
      }
      try changed.withUnsafeBytes { changed in
        let new = try #require(DeliveryEntryView(kept: changed))
        #expect(new.isPayloadIntact && new.payload.elementsEqual(payload))
        #expect(new.flags == [.alert, .badge, .isRedriven] && new.category.text == "OTHER")
        #expect(new.id == entry.id && new.source == entry.source && new.expiration == entry.expiration && new.userHash == entry.userHash)
        #expect(new.collapseID.text == "score" && new.sourceTopic.text == "old" && new.traceparent.text == Self.trace)
        #expect(new.trigger.text == entry.trigger.text && new.priority == 5 && new.application.text == "com.example.shop")
        #expect(NotificationAttachment.list(new.attachments) == [AttachmentTests.photo])
        var told: [String] = []
        ExtensionStates(new.extensions).forEach { told.append("\($0.text) \($1.word)") }
        #expect(told == ["mark modified", String(repeating: "x", count: 24) + " timed-out"])
      }
    }
  }

  @Test func noByteOfAnEntryChangesUnseen() throws {
    let bytes = try Self.encoded()
    let payload = try bytes.withUnsafeBytes { try #require(DeliveryEntryView($0)).payload.count }
    for index in bytes.indices {
      var changed = bytes
      changed[index] ^= 1 << UInt8(index % 8)
      changed.withUnsafeBytes { changed in
        let entry = DeliveryEntryView(kept: changed)
        if index < bytes.count - payload {
          #expect(entry == nil, "byte \(index) of the head")
        } else {
          #expect(entry?.isPayloadIntact == false, "byte \(index) of the payload")
        }
      }
    }
    for count in bytes.indices {
      bytes.withUnsafeBytes { bytes in
        let entry = DeliveryEntryView(kept: UnsafeRawBufferPointer(rebasing: bytes[..<count]))
        #expect(entry?.isPayloadIntact != true, "the first \(count) bytes")
      }
    }
  }

  @Test func aDamagedDeliveryRecordStillTellsWhomItIsFor() throws {
    var entry = try Self.encoded()
    entry[entry.count - 1] ^= 1
    var buffer = ByteBuffer()
    entry.withUnsafeBytes { entry in
      DeliveryRecord.append(
        encoded: entry, kind: .notify, revision: Revision(timestamp: 5, partition: 6, offset: 7), generation: 99, to: &buffer)
    }
    let record = try buffer.withUnsafeBytes { try #require(DeliveryRecord($0)) }
    #expect(record.generation == 99 && record.entry == nil)
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

  /// A stop of its application counts from when it was published again: that is new work.
  @Test func anEntryKnowsWhenItWasPublishedAgain() throws {
    let origin = Self.origin("redrive", timestamp: 1_600_000_000_000)
    let first = try Self.encoded(["carillon-origin": nil, "apns-expiration": nil]).count
    // The time, and the former topic.
    for (origin, bytes) in [(nil, 0), (origin, 8 + 3)] as [(String?, Int)] {
      let entry = try Self.encoded(["carillon-origin": origin, "apns-expiration": nil])
      #expect(entry.count == first + bytes)
      try entry.withUnsafeBytes { bytes in
        let view = try #require(DeliveryEntryView(kept: bytes))
        #expect(view.published == 1_700_000_000_123 && view.isPayloadIntact && view.kind == .notify)
        var again = ByteBuffer()
        let facts = try PayloadFacts(checking: view.payload)
        try DeliveryEntry(view, payload: view.payload, facts, extensions: view.extensions).append(to: &again)
        #expect(again.withUnsafeBytes { DeliveryEntryView(kept: $0)?.published } == view.published)
      }
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
      #expect(buffer.withUnsafeBytes { $0.text } == "before")
    }
  }

  /// A revision stands there only where the source does not tell it: it was raised, or the topic was made again.
  @Test func aDeliveryRecordKeepsItsParts() throws {
    let entry = try Self.encoded()
    let source = try entry.withUnsafeBytes { Revision(try #require(DeliveryEntryView($0)).source) }
    let raised = Revision(timestamp: source.timestamp + 1, partition: source.partition, offset: source.offset)
    for (revision, more) in [(source, 0), (raised, 20), (source.inIncarnation(1), 20)] {
      var buffer = ByteBuffer()
      entry.withUnsafeBytes { DeliveryRecord.append(encoded: $0, kind: .notify, revision: revision, generation: 99, to: &buffer) }
      try buffer.withUnsafeBytes { bytes in
        let record = try #require(DeliveryRecord(bytes))
        #expect(record.kind == .notify && record.generation == 99 && record.revision == revision)
        #expect(record.entry?.collapseID.text == "score")
        #expect(bytes.count == 9 + more + entry.count && bytes.dropFirst(record.headCount).elementsEqual(entry))
        let cut = UnsafeRawBufferPointer(rebasing: bytes.prefix(9 + more - 1))
        #expect(DeliveryRecord(cut) == nil, "half of a revision is none")
      }
    }
    var buffer = ByteBuffer()
    DeliveryRecord.appendTakeover(of: 3, to: &buffer)
    buffer.withUnsafeBytes {
      #expect(DeliveryRecord($0)?.kind == .takeover && DeliveryRecord($0)?.generation == 3 && $0.count == 9)
    }
  }

  @Test func theKeyOfADeliveryIsItsDevice() {
    for text in [RequestFixture.token, String(repeating: "0f", count: 256), String(repeating: "A9", count: 32)] {
      var text = text
      var packed = ByteBuffer()
      text.withUTF8 { DeviceToken.append(packed: UnsafeRawBufferPointer($0), to: &packed) }
      packed.withUnsafeBytes {
        #expect($0.count == text.utf8.count / 2 && DeviceToken(packed: $0)?.text == text.lowercased())
        #expect(DeviceToken(packed: UnsafeRawBufferPointer(rebasing: $0.prefix(31))) == nil)
      }
    }
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
        #expect(receipt.sourceTopic.text == "old" && receipt.traceparent.text == Self.trace && receipt.category.text == "INVITE")
        #expect(ReceiptView(UnsafeRawBufferPointer(rebasing: bytes.dropLast())) == nil)
      }
    }
  }
}
