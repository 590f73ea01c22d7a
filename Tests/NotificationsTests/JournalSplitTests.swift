import TestSupport
import Testing

@testable import Notifications

/// A journal record that is too large for its topic becomes two that say the same.
@Suite struct JournalSplitTests {
  private static func entry(_ offset: Int64, _ random: inout SeededRandom) -> JournalEntry {
    let timestamp = JournalTests.time + Int64.random(in: -5...5, using: &random)
    let implied = JournalTests.implied(offset, timestamp)
    func judgement() -> JournalJudgement {
      var judgement = JournalJudgement(JournalTests.verdicts.randomElement(using: &random) ?? .queued, revision: implied)
      if Bool.random(using: &random) { judgement.revision = Revision(timestamp: 7, partition: 1, offset: UInt64(offset)) }
      if Bool.random(using: &random) { judgement.other = JournalReference(revision: implied, id: JournalTests.id) }
      return judgement
    }
    switch Int.random(in: 0..<6, using: &random) {
    case 0: return JournalEntry(offset: offset, timestamp: timestamp, content: .request(judgement()))
    case 1:
      let devices = (0..<Int.random(in: 0...5, using: &random)).map { _ in JournalEntry.Page.Device(JournalTests.token, judgement()) }
      let closing = Bool.random(using: &random) ? JournalEntry.Closing(devices: 9, checksum: 5) : nil
      return JournalEntry(offset: offset, timestamp: timestamp, content: .page(.init(devices: devices, closing: closing)))
    case 2:
      let passed = JournalEntry.PassedExtension(name: "decrypt", state: ExtensionState.allCases[0], milliseconds: 12)
      return JournalEntry(offset: offset, timestamp: timestamp, content: .extensions([passed, passed]))
    default: return JournalTests.kept(offset, timestamp)
    }
  }

  @Test func `both halves of a record together say what the record said`() throws {
    for seed in 0..<(isComplete ? 300 : 60) as Range<UInt64> {
      var random = SeededRandom(seed: seed)
      let entries = (0..<Int64.random(in: 2...40, using: &random)).map { Self.entry($0 * 2, &random) }
      let value = JournalTests.write(entries)
      let halves = try #require(
        value.withUnsafeBytes { JournalRecord.split($0, partition: JournalTests.partition, incarnation: 2) }, "seed \(seed)")
      let (first, second) = (try JournalTests.read(halves.first), try JournalTests.read(halves.second))
      #expect(first.1 + second.1 == entries, "seed \(seed)")
      let record = try JournalTests.read(value).0
      #expect(first.0 == record && second.0 == record)
    }
  }

  @Test func `a page of a person's devices is split until one device is left`() throws {
    let devices = (0..<5).map { _ in
      JournalEntry.Page.Device(JournalTests.token, JournalJudgement(.expired, revision: .init(timestamp: 1, partition: 0, offset: 1)))
    }
    let closing = JournalEntry.Closing(devices: 5, checksum: 7)
    var values = [JournalTests.write([JournalEntry(offset: 1, timestamp: 1, content: .page(.init(devices: devices, closing: closing)))])]
    var pages: [JournalEntry.Page] = []
    while let value = values.popLast() {
      if let halves = value.withUnsafeBytes({ JournalRecord.split($0, partition: JournalTests.partition, incarnation: 2) }) {
        values += [halves.second, halves.first]
      } else if case .page(let page) = try JournalTests.read(value).1[0].content {
        pages.append(page)
      }
    }
    #expect(pages.map(\.devices.count) == [1, 1, 1, 1, 1])
    #expect(pages.map(\.closing) == [nil, nil, nil, nil, closing], "the sum of all pages stands in the last")
  }
}
