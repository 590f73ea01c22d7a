import Notifications
import Testing

@testable import Transform

/// What the end of the journal tells of a topic that may have been deleted and made again.
@Suite struct TopicIncarnationsTests {
  private var incarnations = TopicIncarnations()

  /// A record of the journal that tells of these requests, each published at its offset in milliseconds after a time.
  private mutating func read(_ incarnation: UInt32, _ offsets: [Int64], raisedTo revision: UInt64? = nil, after time: Int64 = 1_000) {
    var writer = JournalWriter(partition: 2, incarnation: incarnation)
    for offset in offsets {
      let own = Revision(SourcePosition(partition: 2, offset: offset, timestamp: time + offset)).inIncarnation(incarnation)
      let kept = revision.map { Revision(timestamp: $0, partition: own.partition, offset: own.offset) } ?? own
      writer.append(offset: offset, timestamp: time + offset, JournalJudgement(.queued, revision: kept), now: time)
    }
    let headers = [(name: "layout", value: "1"), (name: "worker", value: "w"), (name: "incarnation", value: "\(incarnation)")]
    writer.withValue { incarnations.take(2, headers: headers, $0) }
  }

  @Test mutating func theTopicIsTheSameWhereItsLastRequestLies() {
    read(3, [10, 12, 11])
    #expect(incarnations.incarnation(of: 2, there: 1_012, offsets: 0..<13) == 3)
    // Or where all that lies there is younger.
    #expect(incarnations.incarnation(of: 2, there: nil, offsets: 13..<20) == 3)
    #expect(incarnations.incarnation(of: 1, there: nil, offsets: 0..<1) == nil)
  }

  @Test mutating func theTopicWasMadeAgainWhereAnotherRequestLies() {
    read(3, [10])
    #expect(incarnations.incarnation(of: 2, there: 1_011, offsets: 0..<13) == 4)
    #expect(incarnations.incarnation(of: 2, there: nil, offsets: 0..<5) == 4)
  }

  @Test mutating func aRaisedRevisionDecidesNothing() {
    read(0, [10], raisedTo: 9_999_999)
    #expect(incarnations.incarnation(of: 2, there: 1_010, offsets: 0..<13) == 0)
  }

  /// A worker had stood still while the topic was made again.
  @Test mutating func whatWasWrittenLateOfAFormerTopicDecidesNothing() {
    read(1, [5], after: 9_000)
    read(0, [70])
    #expect(incarnations.incarnation(of: 2, there: 9_005, offsets: 0..<6) == 1)
  }

  @Test mutating func whatIsNoRecordOfTheJournalSaysNothing() {
    let bytes: [UInt8] = [1, 2, 3]
    bytes.withUnsafeBytes { incarnations.take(2, headers: [], $0) }
    #expect(incarnations.lastRequests.isEmpty)
  }
}
