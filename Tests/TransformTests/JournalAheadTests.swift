import TestSupport
import Testing

@testable import Notifications
@testable import Transform

/// What the journal tells of requests, read ahead of them.
@Suite struct JournalAheadTests {
  private static let device = String(repeating: "a", count: 64)
  private static let other = String(repeating: "b", count: 64)

  private static func judgement(_ verdict: Outcome, _ revision: Revision) -> JournalJudgement {
    JournalJudgement(verdict, revision: revision)
  }

  private static func revision(_ offset: Int64, _ timestamp: Int64) -> Revision {
    Revision(timestamp: UInt64(timestamp), partition: 0, offset: UInt64(offset))
  }

  private static func entry(_ offset: Int64, at timestamp: Int64, _ verdict: Outcome, raised: Int64 = 0) -> JournalEntry {
    JournalEntry(offset: offset, timestamp: timestamp, content: .request(judgement(verdict, revision(offset, timestamp + raised))))
  }

  private static func page(_ offset: Int64, at timestamp: Int64, _ devices: [(String, Outcome)], of count: Int?) -> JournalEntry {
    let devices = devices.compactMap { token, verdict in
      DeviceToken(token).map { JournalEntry.Page.Device($0, judgement(verdict, revision(offset, timestamp))) }
    }
    return JournalEntry(
      offset: offset, timestamp: timestamp,
      content: .page(.init(devices: devices, closing: count.map { JournalEntry.Closing(devices: $0, checksum: 0) })))
  }

  private static func verdict(_ telling: JournalAhead.Telling?, at device: String) -> JournalAhead.Verdict? {
    var device = device
    return device.withUTF8 { device in telling?.verdict(at: UnsafeRawBufferPointer(device)) }
  }

  private static func telling(_ answer: JournalAhead.Answer) -> JournalAhead.Telling? {
    if case .told(let telling) = answer { telling } else { nil }
  }

  private static func waits(_ answer: JournalAhead.Answer) -> Bool { if case .wait = answer { true } else { false } }

  @Test func `a request waits until the last page of its person's devices has come`() {
    var ahead = JournalAhead()
    ahead.add(0, from: 5, incarnation: 0, journal: 9)
    ahead.take(Self.page(5, at: 50, [(Self.device, .queued)], of: nil), of: 0)
    #expect(Self.waits(ahead.tell(of: 0, offset: 5, timestamp: 50)))
    ahead.take(Self.page(5, at: 50, [(Self.other, .duplicate)], of: 2), of: 0)
    let telling = Self.telling(ahead.tell(of: 0, offset: 5, timestamp: 50))
    #expect(Self.verdict(telling, at: Self.device) == .kept && Self.verdict(telling, at: Self.other) == .notKept)
    #expect(Self.verdict(telling, at: String(repeating: "c", count: 64)) == .notKept, "it was not the person's then")
    #expect(telling?.isKeptNowhere == false && ahead.size == 0)
  }

  @Test func `what a page is missing of is judged anew, and what was kept once counts as kept`() {
    var ahead = JournalAhead()
    ahead.add(0, from: 0, incarnation: 0, journal: 9)
    ahead.take(Self.page(0, at: 1, [(Self.device, .duplicate)], of: 2), of: 0)
    let part = Self.telling(ahead.tell(of: 0, offset: 0, timestamp: 1))
    #expect(Self.verdict(part, at: Self.device) == .notKept && Self.verdict(part, at: Self.other) == nil && part?.isKeptNowhere == false)
    ahead.take(Self.entry(1, at: 2, .queued, raised: 7), of: 0)
    ahead.take(Self.entry(1, at: 2, .duplicate), of: 0)
    let twice = Self.telling(ahead.tell(of: 0, offset: 1, timestamp: 2))
    #expect(Self.verdict(twice, at: Self.device) == .keptAt(Self.revision(1, 9)))
    ahead.take(Self.entry(2, at: 3, .collapsed), of: 0)
    #expect(Self.telling(ahead.tell(of: 0, offset: 2, timestamp: 3))?.isKeptNowhere == true)
  }

  @Test func `an entry with another timestamp tells nothing, and the end of the journal ends the waiting`() {
    var ahead = JournalAhead()
    ahead.add(0, from: 0, incarnation: 0, journal: 4)
    ahead.take(Self.entry(0, at: 1, .duplicate), of: 0)
    #expect(Self.waits(ahead.tell(of: 0, offset: 0, timestamp: 2)))
    ahead.reached(0, 3)
    #expect(Self.waits(ahead.tell(of: 0, offset: 0, timestamp: 2)))
    ahead.reached(0, 4)
    guard case .untold = ahead.tell(of: 0, offset: 0, timestamp: 2) else { return #expect(Bool(false), "it is told") }
  }

  @Test func `a request that the journal does not tell of waits for no more than the limit`() {
    var ahead = JournalAhead(limit: 10)
    ahead.add(0, from: 0, incarnation: 0, journal: 99)
    for offset in Int64(1)...9 { ahead.take(Self.entry(offset, at: offset, .queued), of: 0) }
    #expect(Self.waits(ahead.tell(of: 0, offset: 0, timestamp: 0)))
    #expect(!ahead.wantsMore(0, isAwaited: false) && ahead.wantsMore(0, isAwaited: true))
    ahead.take(Self.entry(10, at: 10, .queued), of: 0)
    #expect(!ahead.wantsMore(0, isAwaited: true), "whoever waits, and for what")
    guard case .untold = ahead.tell(of: 0, offset: 0, timestamp: 0) else { return #expect(Bool(false), "it waits") }
    #expect(Self.telling(ahead.tell(of: 0, offset: 1, timestamp: 1)) != nil && ahead.size == 9)
  }

  @Test func `a partition that is far ahead takes no other partition's word`() {
    var ahead = JournalAhead(limit: 10)
    for partition in 0..<2 as Range<Int32> { ahead.add(partition, from: 0, incarnation: 0, journal: 99) }
    for offset in Int64(1)...12 { ahead.take(Self.entry(offset, at: offset, .queued), of: 0) }
    #expect(Self.waits(ahead.tell(of: 1, offset: 0, timestamp: 0)) && ahead.wantsMore(1, isAwaited: true))
    ahead.take(Self.entry(0, at: 0, .duplicate), of: 1)
    #expect(Self.telling(ahead.tell(of: 1, offset: 0, timestamp: 0)) != nil)
  }

  /// Entries in about the order of their offsets, some told again, against a dictionary of all that were told before the request was asked for.
  @Test(arguments: 0..<(isComplete ? 20 : 4) as Range<UInt64>) func `it tells what a list of all entries tells`(seed: UInt64) {
    var random = SeededRandom(seed: seed)
    var entries = (0..<Int64(200)).map { offset in
      Self.entry(offset, at: offset, [.queued, .duplicate, .collapsed, .expired].randomElement(using: &random) ?? .queued)
    }
    for _ in 0..<100 {
      let (one, other) = (Int.random(in: 0..<entries.count, using: &random), Int.random(in: 0..<20, using: &random))
      entries.swapAt(one, min(entries.count - 1, one + other))
    }
    for _ in 0..<50 {
      let place = Int.random(in: 0..<entries.count, using: &random)
      let again = Self.entry(entries[place].offset, at: entries[place].offset, .queued)
      entries.insert(again, at: Int.random(in: place...entries.count, using: &random))
    }
    var (ahead, told): (JournalAhead, [Int64: Bool]) = (JournalAhead(), [:])
    ahead.add(0, from: 0, incarnation: 0, journal: Int64(entries.count))
    var (next, come) = (Int64(0), 0)
    while next < 200 {
      let answer = ahead.tell(of: 0, offset: next, timestamp: next)
      if Self.waits(answer) {
        guard come < entries.count else { return #expect(Bool(false), "it waits for more than there is") }
        #expect(told[next] == nil, "it waits for what was told")
        ahead.take(entries[come], of: 0)
        if case .request(let judgement) = entries[come].content {
          let isKept = judgement.verdict == .queued || judgement.verdict == .expired
          told[entries[come].offset] = told[entries[come].offset] == true || isKept
        }
        come += 1
        ahead.reached(0, Int64(come))
      } else {
        #expect(Self.telling(answer)?.isKeptNowhere == told[next].map(!))
        next += 1
      }
    }
    #expect(ahead.size == 0)
  }
}
