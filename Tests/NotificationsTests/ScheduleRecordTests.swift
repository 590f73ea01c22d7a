import TestSupport
import Testing

@testable import Notifications

/// The records of `notifications.schedule`.
@Suite struct ScheduleRecordTests {
  static func pending(zones: [Name] = ["Europe/Rome"]) -> ScheduleRecord.Pending {
    ScheduleRecord.Pending(
      requested: 1_700_000_000_123, lifetime: 86_400, owner: 7,
      dueTimes: zones.map { .init(zone: $0, due: 1_700_000_060_123, name: 5, previous: 4) },
      trigger: Array(#"{"type":"calendar","dateComponents":{"hour":9},"repeats":true}"#.utf8),
      headers: [.init(name: "apns-topic", value: Array("com.example.shop".utf8)), .init(name: "x", value: [])],
      payload: Array(#"{"aps":{"alert":"Hello"}}"#.utf8))
  }

  static let reference = JournalReference(
    revision: Revision(timestamp: 1, partition: 2, offset: 3), id: NotificationID(high: 4, low: 5))

  static let records: [ScheduleRecord] = [
    ScheduleRecord(newest: reference, serial: .max, .pending(pending(zones: ["Europe/Rome", "Asia/Tokyo"]))),
    ScheduleRecord(
      newest: reference, .pending(pending(zones: [""])),
      recent: [
        .init(reference, superseded: reference), .init(reference, superseded: reference, isFromDevices: true),
        .init(id: 1, source: 2, superseded: nil),
      ],
      firings: (0..<8).map { .init(revision: reference.revision, due: Int64($0), name: -1, [.fired, .expired, .skipped(7)][$0 % 3]) }),
    ScheduleRecord(newest: reference, .ended(.canceled), recent: [.init(reference, superseded: nil)]),
  ]

  private static func bytes(_ record: ScheduleRecord) throws -> [UInt8] {
    var buffer = ByteBuffer()
    try record.append(to: &buffer)
    return buffer.withUnsafeBytes(Array.init)
  }

  private static func read(_ bytes: [UInt8]) -> ScheduleRecord? { bytes.withUnsafeBytes { ScheduleRecord($0) } }

  @Test func `a schedule is read as it was written`() throws {
    for record in Self.records { #expect(Self.read(try Self.bytes(record)) == record) }
    for ending in ScheduleRecord.Ending.allCases {
      let record = ScheduleRecord(newest: Self.reference, .ended(ending))
      #expect(Self.read(try Self.bytes(record)) == record)
    }
  }

  @Test func `a schedule of which any byte was changed is refused`() throws {
    for record in Self.records {
      let bytes = try Self.bytes(record)
      for index in bytes.indices {
        var damaged = bytes
        damaged[index] ^= 1
        #expect(Self.read(damaged) == nil, "byte \(index)")
      }
      for count in bytes.indices { #expect(Self.read(Array(bytes[..<count])) == nil) }
      #expect(Self.read(bytes + [0]) == nil)
    }
  }

  @Test func `what does not fit into a schedule is said`() {
    var long = Self.pending()
    long.headers = [.init(name: "x", value: Array(repeating: 0, count: 65_536))]
    var many = Self.pending(zones: (0...ScheduleRecord.Pending.maximumZones).map { "Zone/\($0)" })
    for pending in [long, many] {
      #expect(throws: RecordCodingError.self) { try Self.bytes(ScheduleRecord(newest: Self.reference, .pending(pending))) }
    }
    many.dueTimes.removeLast()
    #expect(throws: Never.self) { try Self.bytes(ScheduleRecord(newest: Self.reference, .pending(many))) }
  }

  /// The bytes with the checksum that they should have.
  private static func mended(_ bytes: UnsafeRawBufferPointer) -> [UInt8] {
    var mended = Array(bytes)
    guard mended.count > 46 else { return mended }
    let head = mended[..<42].withUnsafeBytes { StableHash.hash($0) }
    let checksum = UInt32(truncatingIfNeeded: mended[46...].withUnsafeBytes { StableHash.hash($0, seed: head) })
    for index in 0..<4 { mended[42 + index] = UInt8(truncatingIfNeeded: checksum >> (24 - 8 * UInt32(index))) }
    return mended
  }

  @Test func `a schedule that is read is written alike`() throws {
    let corpus = try Self.records.map(Self.bytes)
    let failures = Fuzz("schedules", corpus: corpus, tokens: ["Europe/Rome", #"{"type":"timeInterval","timeInterval":1}"#]).run {
      bytes, _ in
      // Otherwise nearly all inputs would end at the checksum.
      let mended = Self.mended(bytes)
      guard let record = Self.read(mended) else { return nil }
      if let pending = record.pending, pending.timedTrigger == nil || pending.earliest == nil { return "it is pending, and never due" }
      return try Self.bytes(record) == mended ? nil : "it is not written as it was read"
    }
    #expect(failures.isEmpty, "\(failures)")
  }

  @Test func `a key is read as it was written, and nothing else is a key`() throws {
    let token = RequestFixture.token
    let keys = [("com.example.shop", "user:ada", "order-7"), ("a", "device:\(token)", "é"), ("a.b", "user:a/b c", "x\u{2028}y")]
    for (application, target, identifier) in keys {
      let key = try #require(ScheduleKey(application: Name(application), target: Name(target), identifier: Name(identifier)))
      #expect(key.bytes.withUnsafeBytes { ScheduleKey($0) } == key)
    }
    let others = [
      "", "a", "a\nuser:ada", "a\nuser:ada\n", "\nuser:ada\nx", "a\nada\nx", "a\nuser:\nx", "a b\nuser:ada\nx", "a\nuser:ada\nx\ny",
      "a\ndevice:\(token.uppercased())\nx", "a\ndevice:12\nx", "a\nuser:ada\n\(String(repeating: "x", count: 65))", "a\nchannel:x\nx",
    ]
    for other in others { #expect(withBytes(other) { ScheduleKey($0) } == nil, "\(other)") }
    let broken: [UInt8] = Array("a\nuser:ad".utf8) + [0xC3, 0x0A, 0x78]
    #expect(broken.withUnsafeBytes { ScheduleKey($0) } == nil)
    let failures = Fuzz("schedule keys", corpus: keys.map { Array("\($0.0)\n\($0.1)\n\($0.2)".utf8) }).run { bytes, _ in
      guard let key = ScheduleKey(bytes) else { return nil }
      return key.bytes.elementsEqual(bytes) ? nil : "it is not written as it was read"
    }
    #expect(failures.isEmpty, "\(failures)")
  }
}
