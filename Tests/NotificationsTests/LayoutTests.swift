import JSON
import TestSupport
import Testing

@testable import Notifications

/// What a newer program has written is told from what is damaged, so that it can be left alone.
@Suite struct LayoutTests {
  /// An entry of a plain notification, in this version or another one.
  static func entry(version: Int = Layout.entry.newest) throws -> [UInt8] {
    var buffer = ByteBuffer()
    try DeliveryEntry(#require(RequestFixture.valid().read().view)).append(to: &buffer)
    return NewerLayout.entry(buffer.withUnsafeBytes(Array.init), version: version)
  }

  @Test func `an entry of a newer program is told from one that is damaged`() throws {
    for version in 0...15 {
      let bytes = try Self.entry(version: version)
      #expect(bytes.withUnsafeBytes(DeliveryEntryView.isNewer) == (version > 4), "version \(version)")
      #expect(bytes.withUnsafeBytes { DeliveryEntryView(kept: $0) != nil } == (version == 4), "version \(version)")
      #expect(!bytes.prefix(63).withUnsafeBytes(DeliveryEntryView.isNewer))
    }
    let foreign = Array("what another program may have put into a mailbox, as long as an entry is".utf8)
    #expect(!foreign.withUnsafeBytes(DeliveryEntryView.isNewer))
  }

  @Test func `a delivery record tells that a newer program has written its entry`() throws {
    for (version, isNewer) in [(3, false), (4, false), (5, true)] as [(Int, Bool)] {
      var buffer = ByteBuffer()
      try Self.entry(version: version).withUnsafeBytes {
        DeliveryRecord.append(
          encoded: $0, kind: .notify, revision: Revision(timestamp: 1, partition: 2, offset: 3), generation: 4, to: &buffer)
      }
      buffer.withUnsafeBytes { bytes in
        let record = DeliveryRecord(bytes)
        #expect(record?.isNewer == isNewer && (record?.entry == nil) == (version != 4), "version \(version)")
      }
    }
  }

  @Test func `a receipt of a newer program is none that this one reads`() {
    for version in 0...9 as ClosedRange<UInt8> {
      let bytes = [version] + [UInt8](repeating: 0, count: 99)
      #expect(bytes.withUnsafeBytes(ReceiptView.isNewer) == (version > 4))
      #expect(bytes.withUnsafeBytes { ReceiptView($0) == nil })
    }
    #expect(![UInt8]().withUnsafeBytes(ReceiptView.isNewer))
  }

  /// A state of a schedule whose first byte is another one, with a right checksum.
  static func state(version: Int) throws -> [UInt8] {
    let record = ScheduleRecord(
      newest: JournalReference(revision: Revision(timestamp: 1, partition: 2, offset: 3), id: NotificationID(high: 4, low: 5)),
      .ended(.fired))
    var buffer = ByteBuffer()
    try record.append(to: &buffer)
    return NewerLayout.state(buffer.withUnsafeBytes(Array.init), version: version)
  }

  @Test func `a state of a newer program is told from one that is damaged`() throws {
    for version in [0, 1, 2, 255] {
      var bytes = try Self.state(version: version)
      #expect(bytes.withUnsafeBytes { ScheduleRecord.newerVersion(of: $0) } == (version > 1 ? UInt8(version) : nil), "version \(version)")
      #expect(bytes.withUnsafeBytes { ScheduleRecord($0) != nil } == (version == 1), "version \(version)")
      bytes[10] ^= 1
      #expect(bytes.withUnsafeBytes { ScheduleRecord.newerVersion(of: $0) } == nil, "damaged")
    }
    #expect(Array("x".utf8).withUnsafeBytes { ScheduleRecord.newerVersion(of: $0) } == nil)
  }

  @Test func `a record of the journal and a registration of a newer program name both versions`() throws {
    func rule(_ layout: String) -> String? {
      let headers = [("layout", layout), ("worker", "w"), ("incarnation", "0")]
      do {
        _ = try [1 as UInt8].withUnsafeBytes { try JournalRecord(headers: headers, value: $0) }
        return nil
      } catch { return (error as? FieldError).flatMap { $0.field == "layout" ? $0.rule : nil } }
    }
    #expect(rule("1") == nil)
    #expect(rule("2")?.contains("layout 2 of journal, and this program reads 1 at most") == true)
    #expect(rule("0") == rule("x") && rule("x")?.contains("newer") == false)
    #expect(JournalRecord.newerVersion([("layout", "1"), ("layout", "3")]) == 3)
    #expect(JournalRecord.newerVersion([("worker", "w")]) == nil)

    let device = String(repeating: "ab", count: 32)
    func refused(_ layout: String) -> FieldError? {
      let json = Array(#"{"device":"\#(device)","application":"a","since":1\#(layout)}"#.utf8)
      do {
        _ = try json.withUnsafeBytes { try Registration(json: $0) }
        return nil
      } catch { return error as? FieldError }
    }
    #expect(refused("") == nil && refused(#","layout":1"#) == nil && refused(#","layout":"x""#) == nil)
    let error = refused(#","layout":2,"user":5"#)
    #expect(error?.field == Registration.layoutField, "before any member that this program may misread: \(String(describing: error))")
    #expect(error?.rule.contains("layout 2 of registration, and this program reads 1 at most") == true)
  }
}
