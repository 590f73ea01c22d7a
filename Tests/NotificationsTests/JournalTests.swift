import TestSupport
import Testing

@testable import Notifications

/// The journal's layout: what was written is read again, and its bytes never change unnoticed.
@Suite struct JournalTests {
  static let token = DeviceToken(String(repeating: "ab", count: 32))!
  static let id = NotificationID("123e4567-e89b-12d3-a456-42665544000a")!
  static let headers = [("layout", "1"), ("worker", "transform-1"), ("incarnation", "2")]
  static let partition: Int32 = 3
  static let time: Int64 = 1_700_000_000_000

  /// What the journal has a byte for.
  static let verdicts = Outcome.allCases.filter { $0.journalByte != nil }

  static func implied(_ offset: Int64, _ timestamp: Int64) -> Revision {
    Revision(SourcePosition(partition: partition, offset: offset, timestamp: timestamp)).inIncarnation(2)
  }

  static func kept(_ offset: Int64, _ timestamp: Int64) -> JournalEntry {
    JournalEntry(offset: offset, timestamp: timestamp, content: .request(JournalJudgement(.queued, revision: implied(offset, timestamp))))
  }

  static func write(_ entries: [JournalEntry]) -> [UInt8] {
    var writer = JournalWriter(partition: partition, incarnation: 2)
    for entry in entries { append(entry, to: &writer) }
    return writer.withValue { Array($0) }
  }

  static func append(_ entry: JournalEntry, to writer: inout JournalWriter) {
    switch entry.content {
    case .request(let judgement): writer.append(offset: entry.offset, timestamp: entry.timestamp, judgement, now: time + 5)
    case .unreadable(let count):
      writer.append(offset: entry.offset, timestamp: entry.timestamp, unreadable: Int(count), now: time + 5)
    case .extensions(let passed):
      var bytes = ByteBuffer()
      for passed in passed { passed.append(to: &bytes) }
      bytes.withUnsafeBytes {
        writer.append(offset: entry.offset, timestamp: entry.timestamp, extensions: $0, count: passed.count, now: time + 5)
      }
    case .page(let page):
      writer.append(
        offset: entry.offset, timestamp: entry.timestamp, count: page.devices.count, closing: page.closing, now: time + 5
      ) { number, then in
        var text = page.devices[number].token.text
        text.withUTF8 { then(UnsafeRawBufferPointer($0), page.devices[number].judgement) }
      }
    }
  }

  static func read(_ bytes: [UInt8], headers: [(String, String)] = headers) throws -> (JournalRecord, [JournalEntry]) {
    try bytes.withUnsafeBytes { bytes in
      let record = try JournalRecord(headers: headers.map { (name: $0.0, value: $0.1) }, value: bytes)
      var entries: [JournalEntry] = []
      try record.forEachEntry(in: bytes, partition: partition) { entries.append($0) }
      return (record, entries)
    }
  }

  static func hex(_ bytes: [UInt8]) -> String { bytes.withUnsafeBytes { Hexadecimal.text($0) } }

  /// The head of a record that was begun 5 ms after its first request: time, base offset 1000, base timestamp.
  static let head = "85d095ffbc31" + "e807" + "80a0abfef962"

  static let examples: [(name: String, entries: [JournalEntry], bytes: String)] = [
    ("a run", [kept(1000, time), kept(1001, time + 1), kept(1002, time + 1)], "0f" + "00" + "03" + "00" + "02" + "00"),
    ("a gap ends a run", [kept(1000, time), kept(1005, time)], "0f000100" + "0f0a0100"),
    (
      "a verdict that the request implies the rest of",
      [JournalEntry(offset: 1000, timestamp: time, content: .request(JournalJudgement(.expired, revision: implied(1000, time))))],
      "01" + "00" + "00"
    ),
    (
      "a raised revision",
      [
        JournalEntry(
          offset: 1000, timestamp: time,
          content: .request(
            JournalJudgement(.queued, revision: Revision(timestamp: UInt64(time) + 64, partition: 2 << 16 | 3, offset: 1000))))
      ], "10" + "0000" + "8001" + "838008" + "e807"
    ),
    (
      "what a newer revision superseded",
      [
        JournalEntry(
          offset: 1000, timestamp: time,
          content: .request(
            JournalJudgement(
              .queued, revision: implied(1000, time), other: JournalReference(revision: implied(998, time - 1), id: id))))
      ], "20" + "0000" + "01" + "838008" + "e607" + "123e4567e89b12d3a45642665544000a"
    ),
    (
      "a page of devices, and its closing",
      [
        JournalEntry(
          offset: 1000, timestamp: time,
          content: .page(
            JournalEntry.Page(
              devices: [.init(token, JournalJudgement(.wrongUser, revision: implied(1000, time)))],
              closing: JournalEntry.Closing(devices: 1, checksum: token.hash64()))))
      ], "81" + "0000" + "01" + "20" + String(repeating: "ab", count: 32) + "05" + "01" + "c16611390181d05f"
    ),
    (
      "offsets that could not be read, and the next request",
      [JournalEntry(offset: 1000, timestamp: time, content: .unreadable(300)), kept(1300, time)],
      "83" + "0000" + "ac02" + "0f" + "d804" + "0100"
    ),
    (
      "the extensions that a request has passed, and its verdict",
      [
        JournalEntry(
          offset: 1000, timestamp: time,
          content: .extensions([
            .init(name: "mark", state: .modified, milliseconds: 0), .init(name: "up", state: .timedOut, milliseconds: 2000),
          ])), kept(1000, time),
      ], "82" + "0000" + "02" + "01" + "04" + "6d61726b" + "00" + "05" + "02" + "7570" + "d00f" + "0f" + "00" + "01" + "00"
    ),
  ]

  @Test(arguments: examples.map(\.name)) func theBytesOfAnEntryNeverChange(_ name: String) throws {
    let example = try #require(Self.examples.first { $0.name == name })
    let bytes = Self.write(example.entries)
    #expect(Self.hex(bytes) == Self.head + example.bytes)
    let (record, entries) = try Self.read(bytes)
    #expect(entries == example.entries)
    #expect(record.worker == "transform-1" && record.incarnation == 2 && record.judgedAt == Self.time + 5)
  }

  /// Random records: whatever is written is read again as it was.
  @Test func whatIsWrittenIsReadAgain() throws {
    var random = SeededRandom(seed: 14)
    for _ in 0..<300 {
      var (offset, timestamp) = (Int64.random(in: 0...1 << 40, using: &random), Self.time)
      let entries = (0..<Int.random(in: 1...400, using: &random)).map { _ in
        offset += Bool.random(using: &random) || offset < 100 ? 1 : Int64.random(in: -50...50, using: &random)
        timestamp += Int64.random(in: -3...300, using: &random)
        return JournalEntry(offset: offset, timestamp: timestamp, content: Self.content(offset, timestamp, &random))
      }
      #expect(try Self.read(Self.write(entries)).1 == entries)
    }
  }

  private static func content(_ offset: Int64, _ timestamp: Int64, _ random: inout SeededRandom) -> JournalEntry.Content {
    func judgement() -> JournalJudgement {
      guard Int.random(in: 0..<4, using: &random) == 0 else { return JournalJudgement(.queued, revision: implied(offset, timestamp)) }
      let other = Revision(
        timestamp: .random(in: 0...UInt64.max, using: &random), partition: .random(in: 0...UInt32.max, using: &random),
        offset: .random(in: 0...UInt64.max, using: &random))
      let reference = JournalReference(
        revision: other, id: NotificationID(high: .random(in: 0...UInt64.max, using: &random), low: 7))
      return JournalJudgement(
        Self.verdicts.randomElement(using: &random) ?? .queued,
        revision: Bool.random(using: &random) ? other : implied(offset, timestamp), other: Bool.random(using: &random) ? reference : nil)
    }
    guard Int.random(in: 0..<8, using: &random) == 0 else { return .request(judgement()) }
    if Bool.random(using: &random) {
      return .extensions(
        (0..<Int.random(in: 0...8, using: &random)).map { number in
          JournalEntry.PassedExtension(
            name: String(repeating: "n", count: number * 3), state: ExtensionState.allCases.randomElement(using: &random) ?? .failed,
            milliseconds: .random(in: 0...40_000, using: &random))
        })
    }
    let devices = (0..<Int.random(in: 0...5, using: &random)).map { _ in
      let digits = String(UInt64.random(in: 1 << 60...UInt64.max, using: &random), radix: 16)
      let token = DeviceToken(String(repeating: digits, count: Int.random(in: 4...32, using: &random)))!
      return JournalEntry.Page.Device(token, judgement())
    }
    let closing = JournalEntry.Closing(devices: devices.count, checksum: .random(in: 0...UInt64.max, using: &random))
    return .page(JournalEntry.Page(devices: devices, closing: Bool.random(using: &random) ? closing : nil))
  }

  @Test func aPlainRequestTakesAboutTwoBytes() {
    let entries = (0..<1_000).map { Self.kept(1000 + $0, Self.time + $0) }
    #expect(Self.write(entries).count < 1_100)
  }

  @Test func theOrderOfDevicesDecidesNothingOfTheChecksum() {
    var (one, other) = (JournalEntry.Closing(), JournalEntry.Closing())
    let tokens = [Self.token.text, String(repeating: "cd", count: 40)]
    for token in tokens { Array(token.utf8).withUnsafeBytes { one.add($0) } }
    for token in tokens.reversed() { Array(token.uppercased().utf8).withUnsafeBytes { other.add($0) } }
    #expect(one == other && one.devices == 2)
  }

  @Test func aRecordThatNoWorkerHasWrittenNamesItsFault() {
    let bytes = Self.write([Self.kept(1000, Self.time)])
    func fault(_ headers: [(String, String)], _ bytes: [UInt8] = bytes) -> String? {
      do { _ = try Self.read(bytes, headers: headers) } catch { return (error as? FieldError)?.field }
      return nil
    }
    #expect(fault(Self.headers) == nil)
    #expect(fault([("layout", "2"), ("worker", "w"), ("incarnation", "0")]) == "layout")
    #expect(fault([("layout", "1"), ("incarnation", "0")]) == "worker")
    #expect(fault([("layout", "1"), ("worker", "w"), ("incarnation", "-1")]) == "incarnation")
    #expect(fault(Self.headers, []) == "judgedAt")
    #expect(fault(Self.headers, [1]) == "base")
    #expect(fault(Self.headers, Array(bytes.dropLast())) == "entry")
    #expect(fault(Self.headers, bytes + [0x40, 0, 0]) == "entry", "a flag that is not known yet")
    #expect(fault(Self.headers, bytes + [0x0F, 0, 0]) == "entry", "a verdict that is not known yet")
    #expect(fault(Self.headers, bytes + [0x83, 0, 0, 0]) == "entry", "no offset could not be read")
    #expect(
      fault(Self.headers, bytes + [0x83, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F]) == "entry",
      "more offsets than there are")
    #expect(fault(Self.headers, bytes + [0x81, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F]) == "entry", "more devices than there are bytes")
  }

  @Test func garbageTrapsNothingAndWhatIsReadCanBeWrittenAgain() {
    let corpus = Self.examples.map { Self.write($0.entries) }
    let failures = Fuzz("journal", corpus: corpus, inputs: 5_000).run { bytes, _ in
      guard let record = try? JournalRecord(headers: Self.headers.map { (name: $0.0, value: $0.1) }, value: bytes) else { return nil }
      var entries: [JournalEntry] = []
      guard (try? record.forEachEntry(in: bytes, partition: Self.partition, { entries.append($0) })) != nil, !entries.isEmpty else {
        return nil
      }
      let again = try Self.read(Self.write(entries)).1
      return again == entries ? nil : "what was read is not what was written again"
    }
    #expect(failures.isEmpty, "\(failures)")
  }
}
