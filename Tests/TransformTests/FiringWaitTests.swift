import Calendars
import Notifications
import TestSupport
import Testing

@testable import Store
@testable import Transform

/// Firings among the requests of their targets, some of which fail, ask the schedules late, or are revoked: by random histories.
@Suite struct FiringWaitTests {
  private enum Kind: CaseIterable {
    /// It has no identifier, so nothing of it is pending.
    case unnamed
    /// It may replace what is pending.
    case named
    /// An occurrence.
    case firing
  }

  /// Asks the schedules, and answers when the test says so.
  private final class TestSchedules: Stage {
    private(set) var waiting: [(record: ParkedRecord, content: RequestContent)] = []
    var asked: (Slot) -> Void = { _ in }
    var onNewer: (ParkedRecord, ScheduleKey) -> Void = { _, _ in }
    weak var owner: (any StageOwner)?
    var isActive: Bool { false }

    func take(_ record: ParkedRecord, _ content: RequestContent) -> StageAnswer {
      guard content.schedule != nil else { return .pass(content) }
      asked(record.slot)
      waiting.append((record, content))
      return .later
    }

    func drop(_ records: Set<ParkedRecord>) { waiting.removeAll { records.contains($0.record) } }

    /// - Parameter isNewer: whether a request waits for a newer program, which alone may change the schedule.
    func answer(_ index: Int, fails: Bool, isNewer: Bool = false) {
      let (record, content) = waiting.remove(at: index)
      if isNewer, let job = content.schedule, !job.isFiring {
        onNewer(record, job.key)
        owner?.failed(record, StoreError(.newer(.schedule), "newer"))
      } else if fails {
        owner?.failed(record, StoreError(.unavailable, "gone"))
      } else {
        owner?.passed([(record, content)])
      }
    }
  }

  private final class History: StageSequenceOwner {
    struct Known {
      let number: Int
      let kind: Kind
      let target: UInt64
      /// Which of the target's schedules it concerns.
      let schedule: Int
      /// It waits for a newer program, or has done so.
      var isLeft = false
      /// The judge has found that something is pending.
      var hasAsked = false
    }

    // The chains go, and are made again, many times.
    let wait: FiringWait
    let ledger = Ledger<Int>(tries: 3)
    let schedules = TestSchedules()
    let sequence: StageSequence<Int>
    var random: SeededRandom
    var known: [Slot: Known] = [:]
    /// Records that are judged, and whose outcomes are not durable.
    var judged: Set<Slot> = []
    var (begun, ended, overtaken) = (0, 0, 0)

    init(seed: UInt64) {
      wait = FiringWait(chained: 3) { [ledger] in ledger.has($0, order: $1) }
      sequence = StageSequence([wait, schedules], ledger)
      random = SeededRandom(seed: seed)
      sequence.owner = self
      schedules.asked = { [unowned self] in asks($0) }
      schedules.onNewer = { [unowned self] record, key in
        known[record.slot]?.isLeft = true
        wait.left(record, toNewer: key)
      }
    }

    /// A firing asks the schedules after the earlier requests of its target that could change them. One that waits for a newer program delays the
    /// firings of its own schedule alone.
    private func asks(_ slot: Slot) {
      guard let firing = known[slot], firing.kind == .firing else { return }
      let earlier = known.values.filter { $0.target == firing.target && $0.number < firing.number && $0.kind == .named }
      let before = earlier.filter { !$0.isLeft || $0.schedule == firing.schedule }
      overtaken += earlier.count - before.count
      #expect(before.isEmpty, "\(firing.number) overtakes \(before.map(\.number))")
    }

    func begin() {
      let slot = ledger.begin(begun)
      known[slot] = Known(
        number: begun, kind: Kind.allCases.randomElement(using: &random) ?? .named, target: .random(in: 0..<3, using: &random),
        schedule: .random(in: 0..<2, using: &random))
      begun += 1
      start(slot)
    }

    /// - Parameter asks: whether the judge has found that something is pending.
    func start(_ slot: Slot, asks: Bool = false) {
      guard let record = known[slot] else { return }
      var content = RequestContent.test(number: record.number)
      content.entry.mayReplace = record.kind == .named && !asks
      if record.kind == .firing || asks { content.schedule = .test(record.schedule, isFiring: record.kind == .firing) }
      if content.concernsSchedules { wait.begins(slot, order: ledger.order(of: slot), content, target: record.target) }
      sequence.beginTurn()
      if sequence.take(slot, content, target: record.target) != nil { judge(slot) }
      answered(slot, fails: false)
      sequence.flush()
    }

    private func judge(_ slot: Slot) {
      judged.insert(slot)
      ledger.expect(1, of: slot)
    }

    func passed(_ requests: [(slot: Slot, content: RequestContent)]) {
      for (slot, _) in requests {
        judge(slot)
        answered(slot, fails: false)
      }
    }

    func failed(_ slot: Slot, _ error: StoreError) { answered(slot, fails: true) }

    func keep(_ slot: Slot, _ called: CalledExtensions) {}

    /// The judge has answered: a named request may have to ask the schedules first.
    func judgeAnswered(_ slot: Slot, fails: Bool) {
      judged.remove(slot)
      guard !fails, known[slot]?.kind == .named, known[slot]?.hasAsked == false, Bool.random(using: &random) else {
        return answered(slot, fails: fails)
      }
      known[slot]?.hasAsked = true
      start(slot, asks: true)
    }

    private func answered(_ slot: Slot, fails: Bool) {
      ledger.conclude(ledger.answer(slot), fails ? .failed : .done)
      _ = ledger.takeFailed()
      for slot in ledger.takeEnded() { remove(slot) }
    }

    private func remove(_ slot: Slot) {
      #expect(known.removeValue(forKey: slot)?.number == ledger.remove(slot))
      ended += 1
      wait.ended(slot)
    }

    func retry() {
      for slot in ledger.takeRetries() {
        known[slot]?.hasAsked = false
        start(slot)
      }
    }

    func revoke() {
      let over = Set(known.keys.filter { _ in Int.random(in: 0..<3, using: &random) == 0 })
      let (revoked, released) = sequence.takeRevoked { over.contains($0) }
      for slot in revoked { remove(slot) }
      passed(released)
    }
  }

  /// A schedule remembers only so many firings as it has zones.
  @Test func `firings of one job are of different zones`() throws {
    let key = try #require(ScheduleKey(application: "com.example.shop", target: "user:ada", identifier: "one"))
    let zones: [Name] = ["Europe/Rome", "America/New_York", "Europe/Rome", "Asia/Tokyo"]
    var jobs: [ScheduleJob?] = []
    for (number, zone) in zones.enumerated() {
      let revision = Revision(timestamp: 0, partition: 0, offset: UInt64(number))
      let firing = ScheduleRules.Firing(revision: revision, at: 0, schedule: revision, .init(zone: zone, due: 0, name: 0, previous: 0))
      let reference = JournalReference(revision: revision, id: NotificationID(high: 0, low: UInt64(number)))
      jobs.append(ScheduleJob(key, reference, at: revision, .firing(firing)))
    }
    #expect(ScheduleStage.together(jobs).map(\.dueTime.zone) == Array(zones.prefix(2)))
    #expect(ScheduleStage.together(jobs.dropFirst(2)).map(\.dueTime.zone) == Array(zones.suffix(2)))
  }

  @Test func `a firing asks the schedules after every earlier request of its target, and none waits for ever`() {
    var overtaken = 0
    for seed in 0..<(isComplete ? 60 : 12) as Range<UInt64> {
      let history = History(seed: seed)
      for _ in 0..<400 {
        switch Int.random(in: 0..<12, using: &history.random) {
        case 0..<4: history.begin()
        case 4..<6:
          guard let index = history.schedules.waiting.indices.randomElement(using: &history.random) else { continue }
          let chance = Int.random(in: 0..<8, using: &history.random)
          history.schedules.answer(index, fails: chance < 2, isNewer: chance == 2)
        case 6..<10:
          guard let slot = history.judged.sorted().randomElement(using: &history.random) else { continue }
          history.judgeAnswered(slot, fails: Int.random(in: 0..<4, using: &history.random) == 0)
        case 10: history.retry()
        default: history.revoke()
        }
      }
      for _ in 0..<200 where !history.known.isEmpty {
        for _ in history.schedules.waiting.indices { history.schedules.answer(0, fails: false) }
        for slot in history.judged.sorted() { history.judgeAnswered(slot, fails: false) }
        history.retry()
      }
      overtaken += history.overtaken
      #expect(history.ended == history.begun && history.ledger.count == 0 && history.wait.count == 0, "seed \(seed)")
    }
    #expect(overtaken > 0, "no firing has passed a request that waits for a newer program")
  }
}

extension ScheduleJob {
  fileprivate static func test(_ schedule: Int, isFiring: Bool) -> ScheduleJob? {
    let revision = Revision(timestamp: 0, partition: 0, offset: 0)
    let firing = ScheduleRules.Firing(revision: revision, at: 0, schedule: revision, .init(zone: "", due: 0, name: 0, previous: 0))
    return ScheduleKey(application: "com.example.shop", target: "user:ada", identifier: Name("\(schedule)")).map {
      ScheduleJob(
        $0, JournalReference(revision: revision, id: NotificationID(high: 0, low: 0)), at: revision,
        isFiring ? .firing(firing) : .request(.now))
    }
  }
}
