import Testing

@testable import Kafka

/// How a topic that was deleted and made again is told from one of which nothing new has come, or something once more.
@Suite struct ReadPositionTests {
  private func position(after count: Int64, at timestamp: Int64) -> ReadPosition {
    var position = ReadPosition()
    for offset in 0..<count { position.give(offset, at: timestamp - count + 1 + offset, isAppendTime: true) }
    return position
  }

  @Test func aRecordThatIsReadAgainIsOfTheSameLog() {
    let position = position(after: 5, at: 100)
    #expect(!position.isOfAnotherLog(4, at: 100, end: 5))
    #expect(!position.isOfAnotherLog(2, at: 98, end: 9))
    #expect(!position.isOfAnotherLog(2, at: 98, end: nil))
  }

  @Test func aLogThatIsShorterOrHasAnotherLastRecordIsAnotherOne() {
    let position = position(after: 5, at: 100)
    #expect(position.isOfAnotherLog(0, at: 200, end: 3))
    #expect(position.isOfAnotherLog(4, at: 204, end: 5))
    #expect(position.isOfAnotherLog(4, at: 204, end: 500))
  }

  @Test func aLaterRecordBeforeThePositionShowsThatTheLogWasReplacedOnceForEachLastRecord() {
    var position = position(after: 5, at: 100)
    // The last of them once more would go on for ever where only a broker's clock was wrong.
    let found = [5, 7, 0, 0].map { position.isReplaced(after: 100, firstLater: $0) }
    #expect(found == [false, false, true, false])
    // The new log is read as far, and is replaced as well.
    position.begin()
    for offset in Int64(0)..<5 { position.give(offset, at: 200 + offset, isAppendTime: true) }
    let again = position.isReplaced(after: 204, firstLater: 0)
    #expect(again)
  }

  @Test func anAnswerThatComesAfterAnotherBeginningTellsNothing() {
    var position = position(after: 5, at: 100)
    position.begin()
    #expect(position.appendedAt == nil)
    let before = position.isReplaced(after: 100, firstLater: 0)
    position.give(4, at: 101, isAppendTime: true)
    let after = position.isReplaced(after: 100, firstLater: 0)
    #expect(!before && !after)
  }

  @Test func timesOfProducersTellNothing() {
    var position = ReadPosition()
    position.give(0, at: 500, isAppendTime: false)
    #expect(position.appendedAt == nil)
    let found = position.isReplaced(after: 500, firstLater: 0)
    #expect(!found)
  }
}
