import Calendars
import EventLoop
import Notifications
import Redis
import Store
import TestSupport
import Testing

@testable import Transform

/// Several workers' appliers on one Redis.
private actor Appliers: LoopActor {
  nonisolated let loop = EventLoop(name: "appliers")
  /// The Redis that the appliers share.
  nonisolated let address: RedisAddress
  private let dueTimes: Int
  private var shards: [Shards] = []
  private var appliers: [ScheduleApplier] = []
  private var schedules: Schedules?

  private init(_ address: RedisAddress, dueTimes: Int) { (self.address, self.dueTimes) = (address, dueTimes) }

  /// - Parameter dueTimes: the maximum number of due times of a partition.
  static func with<R: Sendable>(
    _ count: Int, dueTimes: Int = 1000, _ body: @escaping @Sendable (isolated Appliers) async throws -> R
  ) async throws -> R {
    try await withRedis { server in
      try await RedisProbe.with(server.address) { _ = try await $0.command("HSET", "k{0}", "i", "1") }
      let test = Appliers(server.address, dueTimes: dueTimes)
      let result = try await Task(executorPreference: test.loop) {
        for _ in 0..<count {
          var configuration = StoreConfiguration(server.address, buckets: 1)
          configuration.callDeadlineMilliseconds = 60_000
          try await test.add(configuration)
        }
        let result = try await body(test)
        await test.close()
        return result
      }.value
      await test.loop.close()
      return result
    }
  }

  private func add(_ configuration: StoreConfiguration) async throws {
    let shards = Shards(on: loop, configuration, clientName: "test")
    self.shards.append(shards)
    shards.start()
    try await shards.waitUntilUp(withinMilliseconds: 60_000)
    let limits = Schedules.Limits(
      pendingOfTarget: 4, endedOfTarget: 1000, dueTimesOfPartition: dueTimes, lifetimeMilliseconds: 1_000_000_000)
    let schedules = Schedules(shards, limits)
    self.schedules = schedules
    appliers.append(ScheduleApplier(schedules, ScheduleRules(), wallClock: { 1_700_000_000_000 }, clockTolerance: 1 << 60))
  }

  private func close() { for shards in shards { shards.close() } }

  /// What is done with a record, as plain values.
  struct Outcome: Sendable, Equatable {
    var verdict: String
    var serial: UInt32?
    /// What has to end.
    var overflow: ScheduleKey?
  }

  /// What Kafka has not got the end of yet.
  private var overflows: [ScheduleApplier.Overflow] = []

  private func outcome(_ answer: Result<ScheduleApplier.Applied, StoreError>) -> Result<Outcome, StoreError> {
    if case .success(let applied) = answer, let overflow = applied.overflow { overflows.append(overflow) }
    return answer.map {
      Outcome(verdict: "\($0.verdict)", serial: $0.standing?.serial, overflow: $0.overflow?.schedule.key)
    }
  }

  /// Redis has the ends, and Kafka has not.
  func evictWithoutTelling() async throws {
    guard let overflow = overflows.popLast() else { return }
    _ = try await withCheckedContinuation { continuation in
      appliers[0].evict(overflow) { continuation.resume(returning: $0.map { _ in }) }
    }.get()
  }

  /// The worker was killed before it ended them.
  func forgetOverflows() { overflows = [] }

  /// Kafka has the ends: what is too much ends, and what is still too much then.
  func evict() async throws -> [ScheduleKey] {
    var ended: [ScheduleKey] = []
    while let overflow = overflows.popLast() {
      ended.append(overflow.schedule.key)
      let failure: StoreError? = await withCheckedContinuation { continuation in
        appliers[0].evict(overflow) { answer in
          if case .success(.ended(let next?)) = answer { self.overflows.append(next) }
          if case .failure(let error) = answer { continuation.resume(returning: error) } else { continuation.resume(returning: nil) }
        }
      }
      if let failure { throw failure }
      try await tell(overflow.schedule.key)
    }
    return ended
  }

  /// Kafka has the end of a schedule that was evicted, if it was.
  private func tell(_ key: ScheduleKey) async throws {
    guard let schedules else { return }
    let state = try await withCheckedContinuation { continuation in schedules.read(key) { continuation.resume(returning: $0) } }.get()
    guard let record = state.record, record.phase == .ended(.evicting), let end = ScheduleRules().end(record, .evicted) else { return }
    _ = try await withCheckedContinuation { continuation in
      schedules.write(end, of: key, replacing: state, now: 1_700_000_000_000) { continuation.resume(returning: $0) }
    }.get()
  }

  /// Cancels all of a target, and gives the schedules that it has canceled.
  func cancelAll(_ request: JournalReference, in scope: ScheduleKey, by worker: Int) async throws -> [ScheduleKey] {
    try await withCheckedContinuation { continuation in
      appliers[worker].cancelAll(request, in: scope) { continuation.resume(returning: $0.map { $0.map(\.key) }) }
    }.get()
  }

  func apply(_ event: ScheduleApplierTests.Event, by worker: Int) async throws -> Outcome {
    try await withCheckedContinuation { continuation in
      let then: (Result<ScheduleApplier.Applied, StoreError>) -> Void = { continuation.resume(returning: self.outcome($0)) }
      switch event.kind {
      case .firing(let time, let schedule):
        let firing = ScheduleRules.Firing(revision: event.reference.revision, at: .max, schedule: schedule, time)
        appliers[worker].apply(firing, to: event.key, then)
      case .timed(let repeats):
        let trigger = #"{"type":"timeInterval","timeInterval":60,"repeats":\#(repeats)}"#
        let content = ScheduleRecord.Pending(
          requested: 1_700_000_000_000, lifetime: 60, dueTimes: [], trigger: Array(trigger.utf8), headers: [], payload: [])
        appliers[worker].apply(.init(event.reference, .timed(content: content, zones: [])), to: event.key, then)
      case .now: appliers[worker].apply(.init(event.reference, .now), to: event.key, then)
      case .cancel: appliers[worker].apply(.init(event.reference, .cancel), to: event.key, then)
      }
    }.get()
  }

  /// Applies a firing alone in its job, and answers its verdict.
  func fire(
    _ key: ScheduleKey, _ due: ScheduleRecord.Pending.DueTime, of schedule: Revision, at revision: Revision
  ) async throws -> [String] {
    let firing = ScheduleRules.Firing(revision: revision, at: due.due, schedule: schedule, due)
    return try await withCheckedContinuation { continuation in
      appliers[0].apply([firing], to: key, zones: nil) { answer in
        continuation.resume(returning: answer.map { all in all.map { "\($0.verdict)" } })
      }
    }.get()
  }

  func record(_ key: ScheduleKey) async throws -> ScheduleRecord? {
    guard let schedules else { return nil }
    return try await withCheckedContinuation { continuation in
      schedules.read(key) { continuation.resume(returning: $0.map(\.record)) }
    }.get()
  }
}

@Suite struct ScheduleApplierTests {
  /// A record of the requests.
  struct Event: Sendable {
    enum Kind: Sendable {
      case timed(repeats: Bool)
      case now, cancel
      case firing(ScheduleRecord.Pending.DueTime, schedule: Revision)
    }
    var key: ScheduleKey
    var reference: JournalReference
    var kind: Kind

    var isScheduling: Bool { if case .timed = kind { true } else { false } }
  }

  private static func changes(_ verdict: String) -> Bool {
    ["scheduled", "canceled", "tooLate", "firing"].contains { verdict.hasPrefix($0) }
  }

  @Test(arguments: 0..<(isComplete ? 4 : 2)) func `no write of several workers is lost, and what is read again changes nothing`(
    seed: UInt64
  ) async throws {
    try await Appliers.with(3) { test in
      var random = SeededRandom(seed: seed)
      let keys = try (0..<7).map { number in
        try #require(ScheduleKey(application: "a.b", target: "user:ada", identifier: "\(number)"))
      }
      var writes: [ScheduleKey: UInt32] = [:]
      var offset: UInt64 = 0
      for _ in 0..<40 {
        var events: [(event: Event, worker: Int)] = []
        for _ in 0..<8 {
          offset += 1
          let key = keys.randomElement(using: &random) ?? keys[0]
          let record = try await test.record(key)
          var kind = [Event.Kind.timed(repeats: true), .timed(repeats: false), .now, .cancel].randomElement(using: &random) ?? .now
          if let record, let due = record.pending?.earliest, Bool.random(using: &random) {
            kind = .firing(due, schedule: record.newest.revision)
          }
          let reference = JournalReference(
            revision: Revision(timestamp: offset, partition: UInt32.random(in: 0...2, using: &random), offset: offset),
            id: NotificationID(high: 1, low: offset))
          events.append((Event(key: key, reference: reference, kind: kind), Int.random(in: 0..<3, using: &random)))
        }
        let before = try await Self.serials(keys, test)
        let outcomes = try await Self.together(events, test)
        // A request to be shown now writes where something was pending: the serials say that it did.
        var certain: [ScheduleKey: UInt32] = [:]
        var possible: [ScheduleKey: UInt32] = [:]
        for (event, outcome) in zip(events, outcomes) {
          if Self.changes(outcome.verdict) { certain[event.event.key, default: 0] += 1 }
          if outcome.verdict == "passed" { possible[event.event.key, default: 0] += 1 }
        }
        // Killed before Kafka has the ends, a worker reads its last record again, and finds what is too much once more.
        if Bool.random(using: &random), let last = events.last(where: { $0.event.isScheduling }) {
          test.forgetOverflows()
          let again = try await test.apply(last.event, by: 0)
          var pending = 0
          for key in keys where try await test.record(key)?.pending != nil { pending += 1 }
          if again.verdict == "scheduled" { #expect((again.overflow != nil) == (pending > 4), "seed \(seed), offset \(offset)") }
        }
        // One write ends it, and one notes that this is told.
        for key in try await test.evict() { possible[key, default: 0] += 2 }
        let after = try await Self.serials(keys, test)
        for key in keys {
          let grown = (after[key] ?? 0) - (before[key] ?? 0)
          let least = certain[key] ?? 0
          #expect((least...least + (possible[key] ?? 0)).contains(grown), "seed \(seed), offset \(offset)")
          writes[key] = after[key]
        }
        var pending = 0
        for key in keys where try await test.record(key)?.pending != nil { pending += 1 }
        // Where its record was no scheduling one, the next scheduling one finds it.
        #expect(pending <= 4 || events.allSatisfy { !$0.event.isScheduling }, "seed \(seed), offset \(offset)")
        // The worker was killed, and the next one reads the same records.
        if Int.random(in: 0..<3, using: &random) == 0, let last = events.last, let outcome = outcomes.last {
          let again = try await test.apply(last.event, by: 0)
          // One to be shown now left no trace, and may end what another worker has scheduled meanwhile.
          if outcome.verdict == "passed" { continue }
          #expect(Self.word(again.verdict) == Self.word(outcome.verdict), "seed \(seed), offset \(offset)")
          #expect(try await Self.serials(keys, test) == after)
        }
      }
      #expect(writes.values.reduce(0, +) > 100)
    }
  }

  private static func loseDueTimes(_ address: RedisAddress) async throws {
    try await RedisProbe.with(address) { _ = try await $0.command("DEL", "t{0}0") }
  }

  private static func event(_ key: ScheduleKey, _ offset: UInt64, _ kind: Event.Kind, partition: UInt32 = 0) -> Event {
    let revision = Revision(timestamp: offset, partition: partition, offset: offset)
    return Event(key: key, reference: JournalReference(revision: revision, id: NotificationID(high: 1, low: offset)), kind: kind)
  }

  private static func keys(_ count: Int) throws -> [ScheduleKey] {
    try (0..<count).map { try #require(ScheduleKey(application: "a.b", target: "user:ada", identifier: "\($0)")) }
  }

  @Test func `the oldest of too many is not evicted where it fires before it ends, and waits for its event where it ends`() async throws {
    try await Appliers.with(2) { test in
      let keys = try Self.keys(6)
      for (number, key) in keys.prefix(5).enumerated() {
        let applied = try await test.apply(Self.event(key, UInt64(number) + 1, .timed(repeats: false)), by: 0)
        #expect(applied.overflow == (number == 4 ? keys[0] : nil))
      }
      let oldest = try #require(try await test.record(keys[0]))
      let due = try #require(oldest.pending?.earliest)
      // Another worker lets it fire before this one ends it.
      let fired = try await test.apply(Self.event(keys[0], 6, .firing(due, schedule: oldest.newest.revision)), by: 1)
      #expect(fired.verdict.hasPrefix("firing"))
      _ = try await test.evict()
      #expect(try await test.record(keys[0])?.phase == .ended(.expired), "it was fired, however late, and is not evicted")

      let applied = try await test.apply(Self.event(keys[5], 7, .timed(repeats: false)), by: 0)
      #expect(applied.overflow == keys[1])
      try await test.evictWithoutTelling()
      #expect(try await test.record(keys[1])?.phase == .ended(.evicting))
      await #expect(throws: StoreError.self, "what follows waits until the end is told") {
        try await test.apply(Self.event(keys[1], 8, .timed(repeats: false)), by: 1)
      }
    }
  }

  @Test func `a firing whose next due time has no room is rejected, and writes nothing`() async throws {
    // A sixteenth is for targets without a device.
    try await Appliers.with(1, dueTimes: 16) { test in
      let key = try Self.keys(1)[0]
      #expect(try await test.apply(Self.event(key, 1, .timed(repeats: true)), by: 0).verdict == "scheduled")
      let record = try #require(try await test.record(key))
      let due = try #require(record.pending?.earliest)
      // Redis has lost the due times, and knows who held them.
      try await Self.loseDueTimes(test.address)
      let verdicts = try await test.fire(
        key, due, of: record.newest.revision, at: Revision(timestamp: 2, partition: 0, offset: 2))
      #expect(verdicts.count == 1 && verdicts[0].hasPrefix("rejected"), "it was \(verdicts)")
      #expect(try await test.record(key)?.serial == record.serial)
    }
  }

  @Test(arguments: 0..<(isComplete ? 4 : 2))
  func `a cancel of all ends exactly what is older, also beside others and when it is read again`(seed: UInt64)
    async throws
  {
    try await Appliers.with(3) { test in
      var random = SeededRandom(seed: seed)
      let keys = try Self.keys(7)
      var offset: UInt64 = 0
      for _ in 0..<12 {
        for key in keys.shuffled(using: &random).prefix(4) {
          offset += 1
          _ = try? await test.apply(Self.event(key, offset, .timed(repeats: Bool.random(using: &random))), by: 0)
        }
        _ = try await test.evict()
        var pending: Set<ScheduleKey> = []
        for key in keys where try await test.record(key)?.pending != nil { pending.insert(key) }
        // An older request is applied beside it, and a newer one.
        let older = Self.event(keys[Int.random(in: 0..<7, using: &random)], offset + 1, .timed(repeats: false))
        let cancel = Self.event(keys[0], offset + 2, .cancel).reference
        let newer = Self.event(keys[Int.random(in: 0..<7, using: &random)], offset + 3, .timed(repeats: false))
        offset += 3
        async let first = test.apply(older, by: 1)
        async let second = test.cancelAll(cancel, in: keys[0], by: 0)
        async let third = test.apply(newer, by: 2)
        let (before, canceled, after) = try await (first, Set(second), third)
        for key in keys where key != newer.key { #expect(try await test.record(key)?.pending == nil, "seed \(seed), offset \(offset)") }
        #expect(try await test.record(newer.key)?.newest == newer.reference && after.verdict == "scheduled")
        if before.verdict == "scheduled" { pending.insert(older.key) }
        #expect(canceled.subtracting([newer.key]) == pending.subtracting([newer.key]), "seed \(seed), offset \(offset)")
        // Its worker was killed: all that it has ended is told by the next one.
        #expect(try await Set(test.cancelAll(cancel, in: keys[0], by: 1)) == canceled, "seed \(seed), offset \(offset)")
      }
    }
  }

  /// Two verdicts of the same word are the same here.
  private static func word(_ verdict: String) -> Substring { verdict.prefix { $0 != "(" } }

  private static func serials(_ keys: [ScheduleKey], _ test: Appliers) async throws -> [ScheduleKey: UInt32] {
    var serials: [ScheduleKey: UInt32] = [:]
    for key in keys { serials[key] = try await test.record(key)?.serial }
    return serials
  }

  private static func together(_ events: [(event: Event, worker: Int)], _ test: Appliers) async throws -> [Appliers.Outcome] {
    try await withThrowingTaskGroup(of: (Int, Appliers.Outcome).self) { group in
      for (number, (event, worker)) in events.enumerated() { group.addTask { (number, try await test.apply(event, by: worker)) } }
      var outcomes: [Int: Appliers.Outcome] = [:]
      for try await (number, outcome) in group { outcomes[number] = outcome }
      return outcomes.sorted { $0.key < $1.key }.map(\.value)
    }
  }
}
