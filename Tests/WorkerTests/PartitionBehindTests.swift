import TestSupport
import Testing
import Worker

/// How far a partition is behind, against a model that knows all of its records.
@Suite struct PartitionBehindTests {
  private struct Model {
    var stamps: [Int64] = []
    var (begun, finished, logStart, missed) = (0, 0, 0, 0)

    /// What the lane can know.
    func observation(at now: Int64) -> PartitionBehind.Observation {
      .init(
        next: Int64(finished), end: Int64(stamps.count), oldest: finished < begun ? stamps[finished] : nil,
        finished: finished > 0 ? stamps[finished - 1] : nil, now: now)
    }
  }

  @Test(arguments: 0..<(isComplete ? 200 : 40)) func tellsTheOldestUnfinishedRecordsAge(seed: UInt64) {
    var random = SeededRandom(seed: seed)
    var (model, behind) = (Model(), PartitionBehind())
    var now: Int64 = 1_000_000
    for _ in 0..<200 {
      // Records are written between two looks, in the order of their times.
      let before = now
      now += Int64.random(in: 1...1_000, using: &random)
      model.stamps += (0..<Int.random(in: 0...3, using: &random)).map { _ in Int64.random(in: before...now, using: &random) }.sorted()
      model.begun = Int.random(in: model.begun...model.stamps.count, using: &random)
      model.finished = Int.random(in: model.finished...model.begun, using: &random)
      behind.observe(model.observation(at: now))
      #expect(behind.records == Int64(model.stamps.count - model.finished))
      let truth = model.finished < model.stamps.count ? now - model.stamps[model.finished] : 0
      if model.finished == model.stamps.count || model.finished < model.begun {
        #expect(behind.milliseconds == truth)
      } else if let told = behind.milliseconds {
        #expect(told >= truth, "what was not read yet is not told to be younger than it is")
      }
    }
  }

  @Test func aPartitionThatWaitsGrowsOlder() {
    var behind = PartitionBehind()
    behind.observe(.init(next: 5, end: 5, now: 10_000))
    #expect(behind.milliseconds == 0 && behind.records == 0)
    behind.observe(.init(next: 5, end: 9, now: 11_000))
    #expect(behind.milliseconds == 1_000 && behind.records == 4)
    behind.observe(.init(next: 5, end: 9, now: 70_000))
    #expect(behind.milliseconds == 60_000)
    var unknown = PartitionBehind()
    unknown.observe(.init(next: 0, end: 9, now: 70_000))
    #expect(unknown.milliseconds == nil && unknown.records == 9)
  }

  @Test func whatIsGoneIsMissedOnceWhenReadingGoesOnBehindIt() {
    var behind = PartitionBehind()
    #expect(behind.missed(reading: 5, logStart: 0) == nil && behind.missed(reading: 5, logStart: 10) == nil)
    #expect(behind.missed(reading: 5, logStart: 10) == nil, "what was fetched before may still come")
    #expect(behind.missed(reading: 7, logStart: 10) == nil)
    #expect(behind.missed(reading: 7, logStart: 20) == nil)
    #expect(behind.missed(reading: 21, logStart: 20) == 7..<20)
    #expect(behind.missed(reading: 30, logStart: 20) == nil)
    #expect(behind.missed(reading: 30, logStart: 31) == nil)
    #expect(behind.missed(reading: 31, logStart: 31) == 30..<31, "the log is empty, and its end was reached")
    var late = PartitionBehind()
    #expect(late.missed(reading: 5, logStart: 10) == nil)
    #expect(late.missed(reading: 12, logStart: 10) == 5..<10, "reading was to begin where nothing was any more")
  }
}
