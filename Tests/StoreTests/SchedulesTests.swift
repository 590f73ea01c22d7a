import EventLoop
import Notifications
import Redis
import TestSupport
import Testing

@testable import Store

/// The schedules on a Redis of the test's own.
actor TestSchedules: LoopActor {
  nonisolated let loop = EventLoop(name: "schedules")
  private var redis: RedisConnection?
  private var parts: (shards: Shards, schedules: Schedules)?

  static let limits = Schedules.Limits(pendingOfTarget: 4, endedOfTarget: 3, dueTimesOfPartition: 6, lifetimeMilliseconds: 1_000_000)

  static func with<R: Sendable>(
    _ limits: Schedules.Limits = limits, _ body: @escaping @Sendable (isolated TestSchedules) async throws -> R
  ) async throws -> R {
    try await withRedis { server in
      let test = TestSchedules()
      let result = try await Task(executorPreference: test.loop) {
        try await test.connect(server.address, limits)
        let result = try await body(test)
        await test.close()
        return result
      }.value
      await test.loop.close()
      return result
    }
  }

  private func connect(_ address: RedisAddress, _ limits: Schedules.Limits) async throws {
    let redis = RedisConnection(on: loop, RedisConfiguration(address, callDeadlineMilliseconds: hangMilliseconds))
    self.redis = redis
    redis.start()
    try await redis.waitUntilUp(withinMilliseconds: hangMilliseconds)
    var configuration = StoreConfiguration(address, buckets: 1)
    configuration.callDeadlineMilliseconds = hangMilliseconds
    let shards = Shards(on: loop, configuration, clientName: "test")
    parts = (shards, Schedules(shards, limits))
    shards.start()
    try await shards.waitUntilUp(withinMilliseconds: hangMilliseconds)
    _ = try await redis.command(["HSET", "k{0}", "i", "1"])
    for user in ["ada", "bob"] { try await register("com.example.shop", user) }
  }

  func holders(partitions: Int) async throws -> ScheduleHolders {
    try await ScheduleHolders(in: #require(parts?.shards), partitions: partitions)
  }

  /// Registers a device of a person for an application.
  func register(_ application: String, _ user: String) async throws {
    try await command("ZADD", .text("u{0}\(application)/\(user)"), "0", "ab")
  }

  private func close() {
    parts?.shards.close()
    redis?.close()
  }

  @discardableResult
  func command(_ arguments: RedisArgument...) async throws -> RedisValue {
    guard let redis else { return .null }
    return try await redis.command(arguments)
  }

  private func call<R: Sendable>(_ body: (Schedules, @escaping (Result<R, StoreError>) -> Void) -> Void) async throws -> R {
    guard let schedules = parts?.schedules else { throw StoreError(.unavailable, "the test is over") }
    return try await withCheckedContinuation { continuation in
      body(schedules) { continuation.resume(returning: $0) }
    }.get()
  }

  func read(_ key: ScheduleKey) async throws -> Schedules.State { try await call { $0.read(key, $1) } }

  func write(
    _ record: ScheduleRecord, of key: ScheduleKey, replacing state: Schedules.State, now: Int64 = 1_000, place: Revision? = nil
  ) async throws -> Schedules.Written {
    try await call { $0.write(record, of: key, replacing: state, now: now, place: place, $1) }
  }

  /// What is due, whatever computed its due times.
  func due(_ partition: UInt32 = 0, until moment: Int64 = .max, count: Int = 100) async throws -> Schedules.Due {
    var due = try await call { $0.due(in: 0, of: partition, until: moment, count: count, zoneData: "2026a", $1) }
    due.areOutdated = false
    return due
  }

  /// Whether a worker with this version of the time zone database finds the due times outdated.
  func areOutdated(_ version: String, _ partition: UInt32 = 0) async throws -> Bool {
    try await call { $0.due(in: 0, of: partition, until: 0, count: 1, zoneData: version, $1) }.areOutdated
  }

  func note(zoneData version: String) async throws {
    try await call { schedules, then in
      schedules.note(zoneData: version, in: 0, of: 0) { error in then(error.map { .failure($0) } ?? .success(())) }
    }
  }

  /// All pending schedules of a partition, in pages of about so many.
  func pages(of partition: UInt32, _ count: Int) async throws -> [[ScheduleKey]] {
    var (pages, place): ([[ScheduleKey]], String?) = ([], Schedules.firstPage)
    while let current = place {
      let page = try await call { $0.page(in: 0, of: partition, at: current, count: count, $1) }
      pages.append(page.keys)
      place = page.next
    }
    return pages
  }

  func pending(_ target: Name, application: Name = "com.example.shop") async throws -> [Schedules.Schedule] {
    try await call { $0.pending(application: application, target: target, $1) }
  }

  func settle(_ record: ScheduleRecord, of key: ScheduleKey) async throws { try await call { $0.settle(record, of: key, $1) } }

  func restore() async throws {
    try await call { schedules, then in
      schedules.restoreDueTimes(in: 0, of: 0, now: 1_000) { error in then(error.map { .failure($0) } ?? .success(())) }
    }
  }

  /// Gives a state the version after this program's, and a right checksum. Answers its bytes.
  func makeNewer(_ key: ScheduleKey) async throws -> [UInt8] {
    let hash = "s{0}\(key.application)/\(key.target)"
    let bytes = NewerLayout.state(try #require(try await command("HGET", .text(hash), .text(key.identifier.text)).bytes))
    try await command("HSET", .text(hash), .text(key.identifier.text), .bytes(bytes))
    return bytes
  }

  func followUp(_ key: ScheduleKey, of partition: UInt32 = 0, now: Int64) async throws -> Schedules.FollowUp {
    try await call { $0.followUp(key, of: partition, now: now, $1) }
  }

  func conclude(
    _ conclusion: Schedules.Conclusion, _ key: ScheduleKey, in state: Schedules.State, of partition: UInt32 = 0, now: Int64 = 1_000
  ) async throws -> Schedules.Concluded { try await call { $0.conclude(conclusion, key, in: state, of: partition, now: now, $1) } }

  func cancelAll(_ scope: ScheduleKey, _ request: JournalReference) async throws -> [ScheduleKey] {
    try await call { $0.cancelAll(in: scope, request, $1) }
  }

  /// Forgets what is to be forgotten, as a lane does when Kafka has the tombstones.
  func forget(until now: Int64) async throws {
    for partition in 0...1 as ClosedRange<UInt32> {
      while let key = try await due(partition, until: now).followUps.first {
        let found = try await followUp(key, of: partition, now: now)
        let isOver = found.since.map { $0 + Self.limits.lifetimeMilliseconds <= now } ?? true
        let conclusion: Schedules.Conclusion =
          found.state.record?.pending != nil
          ? .done : isOver || found.isOldestOfTooMany ? .forget : .again(at: (found.since ?? 0) + Self.limits.lifetimeMilliseconds)
        guard case .noted = try await conclude(conclusion, key, in: found.state, of: partition, now: now) else {
          throw StoreError(.faulty, "nobody else has changed it")
        }
      }
    }
  }

  func remove(_ names: [[UInt8]]) async throws {
    try await call { schedules, then in
      schedules.remove(unreadable: names, in: 0, of: 0) { error in then(error.map { .failure($0) } ?? .success(())) }
    }
  }
}

@Suite struct SchedulesTests {
  static func key(_ identifier: String, target: Name = "user:ada") throws -> ScheduleKey {
    try #require(ScheduleKey(application: "com.example.shop", target: target, identifier: Name(identifier)))
  }

  /// A record of a few numbers; pending where it has a due time.
  static func record(_ number: UInt64, due: Int64?, partition: UInt32 = 0, serial: UInt32 = 1) -> ScheduleRecord {
    let newest = JournalReference(
      revision: Revision(timestamp: number, partition: partition, offset: number), id: NotificationID(high: number, low: 1))
    guard let due else { return ScheduleRecord(newest: newest, serial: serial, .ended(.fired)) }
    return ScheduleRecord(
      newest: newest, serial: serial,
      .pending(
        ScheduleRecord.Pending(
          requested: 1, lifetime: 60, dueTimes: [.init(zone: "", due: due, name: 1)],
          trigger: Array(#"{"type":"timeInterval","timeInterval":60}"#.utf8), headers: [], payload: [1, 2, 3])))
  }

  @Test func `a state is read as it was written, and replaced by who has read it only`() async throws {
    try await TestSchedules.with { test in
      let key = try Self.key("a")
      #expect(try await test.read(key) == .none)
      let first = Self.record(1, due: 5_000)
      #expect(try await test.write(first, of: key, replacing: .none) == .written(oldest: nil))
      let state = try await test.read(key)
      #expect(state.record == first)
      // Its answer was lost, and it is written again.
      #expect(try await test.write(first, of: key, replacing: .none) == .written(oldest: nil))
      let second = Self.record(2, due: 7_000)
      #expect(try await test.write(second, of: key, replacing: .none) == .changed(state))
      #expect(try await test.write(second, of: key, replacing: state) == .written(oldest: nil))
      #expect(try await test.write(Self.record(3, due: nil), of: key, replacing: state) == .changed(try await test.read(key)))
      #expect(try await test.due() == Self.due([key]))
    }
  }

  private static func due(_ schedules: [ScheduleKey], isFull: Bool = false, next: Int64? = nil) -> Schedules.Due {
    var due = Schedules.Due()
    (due.schedules, due.isFull, due.next) = (schedules, isFull, next)
    return due
  }

  @Test func `what is due is told in its order, and when the next is`() async throws {
    try await TestSchedules.with { test in
      let keys = try ["a", "b", "c"].map { try Self.key($0) }
      for (number, key) in keys.enumerated() {
        _ = try await test.write(Self.record(1, due: 9_000 - Int64(number) * 1_000), of: key, replacing: .none)
      }
      #expect(try await test.due(until: 6_999) == Self.due([], next: 7_000))
      #expect(try await test.due(until: 8_000) == Self.due([keys[2], keys[1]], next: 9_000))
      #expect(try await test.due(until: 10_000, count: 1) == Self.due([keys[2]], isFull: true, next: 8_000))
      #expect(try await test.due(1) == Self.due([]))
      // What moves to another partition is due there only.
      let state = try await test.read(keys[0])
      _ = try await test.write(Self.record(2, due: 500, partition: 1), of: keys[0], replacing: state)
      #expect(try await test.due(1) == Self.due([keys[0]]))
      #expect(try await test.due() == Self.due([keys[2], keys[1]]))
    }
  }

  @Test func `due times are outdated for a worker with another version of the time zone database, until it notes its own`() async throws {
    try await TestSchedules.with { test in
      // Without a schedule there is nothing to compute again.
      #expect(try await test.areOutdated("2026a") == false)
      _ = try await test.write(Self.record(1, due: 9_000), of: try Self.key("a"), replacing: .none)
      #expect(try await test.areOutdated("2026a") == false)
      #expect(try await test.areOutdated("2026b"))
      #expect(try await test.areOutdated("2026b", 1) == false, "the other partition has no schedule")
      try await test.note(zoneData: "2026b")
      #expect(try await test.areOutdated("2026b") == false)
      #expect(try await test.areOutdated("2026a"))
      // Of a Redis that has lost the version, or has something else there, the due times may be any version's.
      try await test.command("SET", .text(Keys(buckets: 1).zoneData(0)), "x")
      #expect(try await test.areOutdated("2026b"))
    }
  }

  @Test func `the pages of a partition have each of its schedules`() async throws {
    try await TestSchedules.with { test in
      let keys = try (0..<300).map { try Self.key("k\($0)") }
      for (number, key) in keys.enumerated() {
        try await test.command("ZADD", .text("t{0}\(number % 3 == 0 ? 1 : 0)"), .integer(Int64(number)), .bytes(key.bytes))
      }
      let pages = try await test.pages(of: 0, 20)
      #expect(pages.count > 3 && Set(pages.joined()) == Set(keys.enumerated().filter { $0.offset % 3 != 0 }.map(\.element)))
      #expect(try await test.pages(of: 2, 20) == [[]])
    }
  }

  @Test func `a bucket that Redis has lost says so, and nothing is written to it`() async throws {
    try await TestSchedules.with { test in
      try await test.command("DEL", "k{0}")
      let key = try Self.key("a")
      await #expect(throws: StoreError.bucketLost) { try await test.read(key) }
      await #expect(throws: StoreError.bucketLost) { try await test.due() }
      await #expect(throws: StoreError.bucketLost) { try await test.write(Self.record(1, due: 5), of: key, replacing: .none) }
      #expect(try await test.command("KEYS", "[^u]*").array?.isEmpty == true)
    }
  }

  @Test func `of schedules with one timestamp the oldest is the one with the lowest offset, whatever its identifier`() async throws {
    try await TestSchedules.with { test in
      for number in 1...5 as ClosedRange<UInt64> {
        let revision = Revision(timestamp: 7_000, partition: 0, offset: number)
        var record = Self.record(number, due: 90_000)
        record.newest = JournalReference(revision: revision, id: record.newest.id)
        // The first one has the last identifier.
        let written = try await test.write(record, of: try Self.key("\(9 - number)"), replacing: .none)
        guard case .written(let oldest, _) = written else {
          Issue.record("\(written)")
          return
        }
        #expect(oldest?.key.identifier == (number == 5 ? "8" : nil))
        #expect(oldest?.state == (number == 5 ? try await test.read(try Self.key("8")) : nil))
      }
    }
  }

  /// Who holds the due times of one partition, as a person would count: the application of each, or none where nobody was registered.
  private struct Holders {
    var held: [ScheduleKey: Name?] = [:]

    func hasRoom(for key: ScheduleKey, isKnown: Bool, _ most: Int) -> Bool {
      if held[key] != nil { return true }
      let applications = held.values.compactMap { $0 }
      guard isKnown else { return held.count - applications.count < max(1, most / 16) }
      let others = Set(applications).subtracting([key.application]).count
      return held.count < most || applications.count { $0 == key.application } * (others + 1) < most
    }
  }

  @Test(arguments: 0..<(isComplete ? 6 : 3))
  func `one application may use all room, and never blocks another one, nor does whoever names people that do not exist`(
    seed: UInt64
  ) async throws {
    let limits = Schedules.Limits(pendingOfTarget: 1_000, dueTimesOfPartition: 33, lifetimeMilliseconds: 1_000_000)
    try await TestSchedules.with(limits) { test in
      let device = String(repeating: "ab", count: 32)
      let owner = [UInt8](repeating: 0, count: 16) + withUnsafeBytes(of: NameHash.hash(Name("com.a")).bigEndian) { Array($0) }
      try await test.command("HSET", .text("d{0}\(device)"), "u", .bytes(owner))
      for application in ["com.a", "com.b"] { try await test.register(application, "ada") }
      var random = SeededRandom(seed: seed)
      var holders: [UInt32: Holders] = [0: Holders(), 1: Holders()]
      var (records, refused): ([ScheduleKey: ScheduleRecord], Set<Bool>) = ([:], [])
      for step in 1...600 {
        // One application after the other is the busiest.
        let application: Name = Int.random(in: 0..<4, using: &random) > 0 ? (step < 300 ? "com.a" : "com.b") : "com.c"
        let target: Name = [Name("user:ada"), Name("device:\(device)"), "user:nobody"].randomElement(using: &random) ?? "user:ada"
        let isKnown = target == "user:ada" && application != "com.c" || target.text.hasPrefix("device:") && application == "com.a"
        let identifier = Name("\(Int.random(in: 0..<60, using: &random))")
        let key = try #require(ScheduleKey(application: application, target: target, identifier: identifier))
        let former = records[key]?.newest.revision.sourcePartition
        let partition = UInt32.random(in: 0...1, using: &random)
        let isPending = Int.random(in: 0..<5, using: &random) > 0
        let record = Self.record(UInt64(step), due: isPending ? 9_000_000 : nil, partition: partition)
        let hasRoom = !isPending || holders[partition]?.hasRoom(for: key, isKnown: isKnown, limits.dueTimesOfPartition) == true
        switch try await test.write(record, of: key, replacing: try await test.read(key)) {
        case .changed: Issue.record("step \(step): another state stands")
        case .full(let told):
          #expect(!hasRoom && told == isKnown, "step \(step)")
          refused.insert(told)
        case .written:
          #expect(hasRoom, "step \(step)")
          records[key] = record
          if let former, former != partition || !isPending { holders[former]?.held[key] = nil }
          if !isPending { holders[partition]?.held[key] = nil }
          if isPending, holders[partition]?.held[key] == nil { holders[partition]?.held[key] = .some(isKnown ? application : nil) }
        }
      }
      #expect(refused == [true, false])
      for (partition, holders) in holders {
        let told = try await test.command("HGETALL", .text("a{0}\(partition)")).array ?? []
        let counts = stride(from: 0, to: told.count, by: 2).map { "\(told[$0].text ?? "") \(told[$0 + 1].text ?? "")" }
        let applications = Dictionary(grouping: holders.held.values.compactMap { $0 }) { $0 }.map { "\($0.key) \($0.value.count)" }
        #expect(Set(counts) == Set(applications))
        let strangers = holders.held.count { $0.value == nil }
        #expect(try await test.command("HLEN", .text("w{0}\(partition)")).integer == Int64(strangers))
      }
      let (told, all) = (try await test.holders(partitions: 2), holders.values.flatMap(\.held.values))
      #expect(
        Dictionary(uniqueKeysWithValues: told.holders.map { ($0.application, $0.pending) })
          == Dictionary(all.compactMap { $0 }.map { ($0, 1) }, uniquingKeysWith: +))
      #expect(told.holders.map(\.pending) == told.holders.map(\.pending).sorted(by: >) && told.pending == all.count)
      #expect(told.fullest?.pending == holders.values.map(\.held.count).max() && told.fullest?.bucket == 0)
      #expect(told.fullest.flatMap { holders[UInt32($0.partition)]?.held.count } == told.fullest?.pending)
    }
  }

  /// Its rejection may be in Kafka already, though the worker was killed before it committed the record.
  @Test func `a record that there was no room for has none when it is read again, and another one has`() async throws {
    let limits = Schedules.Limits(pendingOfTarget: 1_000, dueTimesOfPartition: 2, lifetimeMilliseconds: 1_000_000)
    try await TestSchedules.with(limits) { test in
      let (first, key) = (try Self.key("a"), try Self.key("b"))
      let places = (1...3).map { Revision(timestamp: 1, partition: 0, offset: $0) }
      for (number, key) in [first, try Self.key("c")].enumerated() {
        let written = try await test.write(Self.record(UInt64(number) + 1, due: 5_000), of: key, replacing: .none, place: places[0])
        #expect(written == .written(oldest: nil))
      }
      let record = Self.record(3, due: 5_000)
      #expect(try await test.write(record, of: key, replacing: .none, place: places[1]) == .full(isKnown: true))
      _ = try await test.write(Self.record(4, due: nil), of: first, replacing: try await test.read(first), place: places[2])
      #expect(try await test.write(record, of: key, replacing: .none, place: places[1]) == .full(isKnown: true), "there is room now")
      #expect(try await test.write(record, of: key, replacing: .none, place: places[2]) == .written(oldest: nil), "redriven")
      #expect(try await test.write(record, of: key, replacing: .none, place: places[1]) == .written(oldest: nil), "it stands already")
    }
  }

  /// The evictions go one by one, so a producer that gives all its requests one timestamp lets them grow.
  @Test func `a write compares a bounded number of schedules with one timestamp`() async throws {
    let limits = Schedules.Limits(pendingOfTarget: 4, dueTimesOfPartition: 1_000, lifetimeMilliseconds: 1_000_000)
    try await TestSchedules.with(limits) { test in
      for number in 1...400 as ClosedRange<UInt64> {
        if number == 400 { try await test.command("CONFIG", "RESETSTAT") }
        var record = Self.record(number, due: 90_000)
        record.newest = JournalReference(revision: Revision(timestamp: 7_000, partition: 0, offset: number), id: record.newest.id)
        _ = try await test.write(record, of: try Self.key("\(number)"), replacing: .none)
      }
      // The first one, those that are compared, and how many the application holds.
      #expect(try await test.command("INFO", "commandstats").calls["hget"] == 258)
    }
  }

  @Test func `the pending schedules of a target are read together`() async throws {
    try await TestSchedules.with { test in
      #expect(try await test.pending("user:ada").isEmpty)
      let keys = try ["a", "b", "c"].map { try Self.key($0) }
      for (number, key) in keys.enumerated() {
        _ = try await test.write(Self.record(UInt64(number) + 1, due: 5_000), of: key, replacing: .none)
      }
      _ = try await test.write(Self.record(1, due: 5_000), of: try Self.key("a", target: "user:bob"), replacing: .none)
      _ = try await test.write(Self.record(4, due: nil), of: keys[1], replacing: try await test.read(keys[1]))
      let found = try await test.pending("user:ada")
      #expect(found.map(\.key) == [keys[0], keys[2]])
      #expect(found.map(\.state) == [try await test.read(keys[0]), try await test.read(keys[2])])
      #expect(try await test.pending("user:ada", application: "com.example.news").isEmpty)
      try await test.command("DEL", "k{0}")
      await #expect(throws: StoreError.bucketLost) { try await test.pending("user:ada") }
    }
  }

  @Test func `what cannot be read is told, and written over`() async throws {
    try await TestSchedules.with { test in
      let key = try Self.key("a")
      try await test.command("HSET", "s{0}com.example.shop/user:ada", "a", "no state at all, and a long text that is none of a schedule")
      let state = try await test.read(key)
      #expect(state.isUnreadable && state.record == nil)
      #expect(try await test.write(Self.record(1, due: 5), of: key, replacing: .none) == .changed(state))
      #expect(try await test.write(Self.record(1, due: 5), of: key, replacing: state) == .written(oldest: nil))
      try await test.command("ZADD", "t{0}0", "1", "no schedule", "2.5", .bytes(key.bytes))
      let due = try await test.due()
      #expect(due.unreadable == [Array("no schedule".utf8)])
      #expect(due.schedules == [key], "the schedule itself says when it is due")
      try await test.remove(due.unreadable)
      #expect(try await test.due().unreadable.isEmpty)
      try await test.command("DEL", "s{0}com.example.shop/user:ada")
      try await test.command("SET", "s{0}com.example.shop/user:ada", "x")
      do {
        _ = try await test.read(key)
        Issue.record("a key of another type was read")
      } catch { #expect((error as? StoreError)?.code == .faulty) }
    }
  }

  @Test(arguments: ["due", "write"])
  func `due times that were replaced by something else are missing until they are restored`(first: String) async throws {
    try await TestSchedules.with { test in
      let keys = try ["a", "b", "c", "d"].map { try Self.key($0) }
      for (number, key) in keys.prefix(3).enumerated() {
        _ = try await test.write(Self.record(1, due: Int64(number) * 1_000), of: key, replacing: .none)
      }
      let state = try await test.read(keys[0])
      _ = try await test.write(Self.record(1, due: nil, serial: 2), of: keys[0], replacing: state)
      _ = try await test.write(Self.record(2, due: 9_000, partition: 1), of: try Self.key("e", target: "user:bob"), replacing: .none)
      try await test.command("DEL", "t{0}0")
      try await test.command("SET", "t{0}0", "x")
      try await test.command("SET", "s{0}com.example.shop/user:eve", "no schedules")
      if first == "write" { _ = try await test.write(Self.record(3, due: 4_000), of: keys[3], replacing: .none) }
      for _ in 0..<2 {
        let due = try await test.due()
        #expect(due.areMissing && due.schedules == (first == "write" ? [keys[3]] : []))
      }
      try await test.restore()
      let due = try await test.due()
      #expect(due.schedules == (first == "write" ? Array(keys[1...]) : Array(keys[1...2])) && !due.areMissing)
      #expect(due.followUps == [keys[0]], "what has ended is followed up")
      #expect(try await test.due(1).schedules.count == 1, "the other partition has its own")
    }
  }

  @Test func `a state of a newer program is named, is not unreadable, and keeps its due time`() async throws {
    try await TestSchedules.with { test in
      let (newer, own) = (try Self.key("newer"), try Self.key("own"))
      for key in [newer, own] { _ = try await test.write(Self.record(1, due: 1_000), of: key, replacing: .none) }
      let bytes = try await test.makeNewer(newer)
      let state = try await test.read(newer)
      #expect(state.newerVersion == 2 && !state.isUnreadable && !state.isMissing && state.record == nil)
      #expect(try await test.pending("user:ada").map(\.state.newerVersion) == [2, nil])
      // A restoration cannot know when it is due: the mark stays for a newer program.
      try await test.command("DEL", "t{0}0")
      try await test.command("SET", "t{0}0", "x")
      #expect(try await test.due().areMissing)
      do {
        try await test.restore()
        Issue.record("the due times are not complete")
      } catch { #expect((error as? StoreError)?.code == .newer(.schedule)) }
      let due = try await test.due()
      #expect(due.areMissing && due.schedules == [own])
      #expect(try await test.command("HGET", "s{0}com.example.shop/user:ada", "newer").bytes == bytes)
    }
  }

  /// What stands in Redis, as a person would keep it: each write in its order.
  private struct Model {
    var records: [ScheduleKey: ScheduleRecord] = [:]
    var ended: [(key: ScheduleKey, at: Int64)] = []

    func pending(_ target: Name) -> [ScheduleKey] {
      records.filter { $0.key.target == target && $0.value.pending != nil }.sorted {
        ($0.value.newest.revision.timestamp, $0.key.identifier) < ($1.value.newest.revision.timestamp, $1.key.identifier)
      }.map(\.key)
    }

    func due(_ partition: UInt32) -> [(ScheduleKey, Int64)] {
      var due: [(ScheduleKey, Int64)] = []
      for (key, record) in records where record.newest.revision.sourcePartition == partition {
        if let time = record.pending?.earliest { due.append((key, time.due)) }
      }
      return due.sorted { left, right in
        left.1 == right.1 ? left.0.bytes.lexicographicallyPrecedes(right.0.bytes) : left.1 < right.1
      }
    }

    mutating func write(_ record: ScheduleRecord, _ key: ScheduleKey, now: Int64, _ limits: Schedules.Limits) {
      records[key] = record
      ended.removeAll { $0.key == key }
      if record.pending == nil { ended.append((key, now)) }
      forget(ended.filter { $0.at <= now - limits.lifetimeMilliseconds })
      let same = ended.filter { $0.key.target == key.target }
      forget(Array(same.prefix(max(0, same.count - limits.endedOfTarget))))
    }

    private mutating func forget(_ gone: [(key: ScheduleKey, at: Int64)]) {
      for (gone, _) in gone {
        records[gone] = nil
        ended.removeAll { $0.key == gone }
      }
    }
  }

  @Test(arguments: 0..<(isComplete ? 6 : 3)) func `Redis has what the history of all writes says`(seed: UInt64) async throws {
    try await TestSchedules.with { test in
      var random = SeededRandom(seed: seed)
      var (model, now) = (Model(), Int64(1_000_000))
      let limits = TestSchedules.limits
      let targets: [Name] = ["user:ada", "user:bob"]
      for step in 1...250 {
        now += Int64.random(in: 1...(step % 50 == 0 ? 900_000 : 2_000), using: &random)
        let target = targets.randomElement(using: &random) ?? "user:ada"
        let key = try Self.key("\(Int.random(in: 0..<9, using: &random))", target: target)
        let state = try await test.read(key)
        #expect(state.record == model.records[key], "step \(step)")
        let isPending = Int.random(in: 0..<3, using: &random) > 0
        let partition = UInt32.random(in: 0...1, using: &random)
        let record = Self.record(
          UInt64(step), due: isPending ? now + .random(in: -5_000...5_000, using: &random) : nil, partition: partition)
        let isFull =
          isPending && model.due(partition).count >= limits.dueTimesOfPartition && !model.due(partition).contains { $0.0 == key }
        switch try await test.write(record, of: key, replacing: state, now: now) {
        case .changed: Issue.record("step \(step): another state stands")
        case .full: #expect(isFull, "step \(step)")
        case .written(let oldest, _):
          #expect(!isFull, "step \(step)")
          model.write(record, key, now: now, limits)
          let pending = model.pending(target)
          #expect(oldest?.key == (pending.count > limits.pendingOfTarget ? pending.first : nil), "step \(step)")
          guard let oldest, let former = oldest.state.record else { break }
          // As the caller does: the oldest ends.
          var evicted = former
          (evicted.phase, evicted.serial) = (.ended(.evicted), former.serial + 1)
          guard case .written(nil, _) = try await test.write(evicted, of: oldest.key, replacing: oldest.state, now: now) else {
            Issue.record("step \(step): too many are pending still")
            break
          }
          model.write(evicted, oldest.key, now: now, limits)
        }
        try await test.forget(until: now)
        for partition in 0...1 as ClosedRange<UInt32> {
          let due = try await test.due(partition).schedules
          #expect(due == model.due(partition).map(\.0), "step \(step)")
        }
      }
    }
  }

  @Test func `what Redis keeps of a target lies in its compact form`() async throws {
    try await TestSchedules.with { test in
      for name in ["a", "b"] { _ = try await test.write(Self.record(1, due: 5_000), of: try Self.key(name), replacing: .none) }
      for key in ["s{0}com.example.shop/user:ada", "n{0}com.example.shop/user:ada", "h{0}user:ada"] {
        #expect(try await test.command("OBJECT", "ENCODING", .text(key)).text == "listpack", "\(key)")
      }
    }
  }

  @Test func `nothing of a target stays where all its schedules have ended long ago`() async throws {
    try await TestSchedules.with { test in
      let key = try Self.key("a")
      _ = try await test.write(Self.record(1, due: 5_000), of: key, replacing: .none)
      #expect(try await test.command("PTTL", "s{0}com.example.shop/user:ada").integer == -1)
      _ = try await test.write(Self.record(1, due: nil, serial: 2), of: key, replacing: try await test.read(key))
      for kind in ["s", "e"] {
        let left = try await test.command("PTTL", .text("\(kind){0}com.example.shop/user:ada")).integer ?? -1
        #expect((1...2_000_000).contains(left), "\(kind)")
      }
      #expect(try await test.command("EXISTS", "n{0}com.example.shop/user:ada", "t{0}0").integer == 0)
      try await test.forget(until: 1_000_999)
      #expect(try await test.read(key).record != nil, "it is remembered for its time")
      try await test.forget(until: 1_001_000)
      let keys: [RedisArgument] = ["s", "n", "e"].map { .text("\($0){0}com.example.shop/user:ada") } + ["t{0}0", "o{0}0"]
      for key in keys { #expect(try await test.command("EXISTS", key).integer == 0, "\(key)") }
    }
  }

  @Test func `a target counts as having something pending until every end of the application is settled`() async throws {
    try await TestSchedules.with { test in
      let (keys, end) = (try ["a", "b"].map { try Self.key($0) }, Self.record(1, due: nil, serial: 2))
      for key in keys { _ = try await test.write(Self.record(1, due: 5_000), of: key, replacing: .none) }
      for key in keys { _ = try await test.write(end, of: key, replacing: try await test.read(key)) }
      // A worker that is killed now has not told one of the two ends, and is to find its schedule again.
      try await test.settle(end, of: keys[1])
      #expect(try await test.command("EXISTS", "h{0}user:ada").integer == 1)
      try await test.settle(Self.record(1, due: 5_000), of: keys[0])
      #expect(try await test.command("EXISTS", "h{0}user:ada").integer == 1, "Kafka has another state")
      try await test.settle(end, of: keys[0])
      #expect(try await test.command("EXISTS", "h{0}user:ada").integer == 0)
      #expect(try await test.followUp(keys[0], now: 1_000).since == 1_000)
    }
  }

  @Test func `however many have ended, each of them is settled first`() async throws {
    let limits = Schedules.Limits(pendingOfTarget: 300, dueTimesOfPartition: 300, lifetimeMilliseconds: 1_000_000)
    try await TestSchedules.with(limits) { test in
      let (keys, end) = (try (0..<150).map { try Self.key("\($0)") }, Self.record(1, due: nil, serial: 2))
      for key in keys { _ = try await test.write(Self.record(1, due: 5_000), of: key, replacing: .none) }
      for (number, key) in keys.enumerated() {
        _ = try await test.write(end, of: key, replacing: try await test.read(key), now: 1_000 + Int64(number))
      }
      // The newest first, so that only the last page has one that is not settled.
      for key in keys.reversed() {
        #expect(try await test.command("EXISTS", "h{0}user:ada").integer == 1, "\(key)")
        try await test.settle(end, of: key)
      }
      #expect(try await test.command("EXISTS", "h{0}user:ada").integer == 0)
    }
  }

  @Test func `what has changed since its tombstone was written is not forgotten, and stays to be followed up`() async throws {
    try await TestSchedules.with { test in
      let key = try Self.key("a")
      _ = try await test.write(Self.record(1, due: nil), of: key, replacing: .none)
      let old = try await test.followUp(key, now: 2_000_000)
      #expect(old.since == 1_000 && old.state.record == Self.record(1, due: nil) && !old.isOldestOfTooMany)
      // A tombstone is on its way, and the identifier is used again.
      _ = try await test.write(Self.record(2, due: 9_000_000), of: key, replacing: try await test.read(key), now: 2_000_000)
      guard case .changed(let new) = try await test.conclude(.forget, key, in: old.state, now: 2_000_000) else {
        Issue.record("it was forgotten")
        return
      }
      #expect(new.state.record == Self.record(2, due: 9_000_000) && new.since == nil)
      #expect(try await test.due(until: 2_000_000).followUps == [key], "who comes after a killed worker finds it")
      #expect(try await test.conclude(.done, key, in: new.state, now: 2_000_000) == .noted(isNextDue: false))
      #expect(try await test.due(until: 2_000_000).followUps == [])
      #expect(try await test.read(key).record == Self.record(2, due: 9_000_000))
    }
  }

  @Test func `an eviction is to be followed up at once, and the oldest of too many ended ones`() async throws {
    try await TestSchedules.with { test in
      let keys = try (0..<5).map { try Self.key("\($0)") }
      var evicting = Self.record(1, due: nil)
      evicting.phase = .ended(.evicting)
      #expect(try await test.write(evicting, of: keys[0], replacing: .none, now: 1_000) == .written(oldest: nil, isDue: true))
      #expect(try await test.due(until: 1_000).followUps == [keys[0]])
      evicting.phase = .ended(.evicted)
      #expect(
        try await test.write(evicting, of: keys[0], replacing: try await test.read(keys[0]), now: 1_001) == .written(oldest: nil))
      #expect(try await test.due(until: 1_001) == Self.due([], next: 1_001_001))
      for number in 1...3 {
        let isDue = number == 3
        #expect(
          try await test.write(Self.record(1, due: nil), of: keys[number], replacing: .none, now: 1_001 + Int64(number))
            == .written(oldest: nil, isDue: isDue))
      }
      #expect(try await test.due(until: 1_004).followUps == [keys[0]])
      #expect(try await test.followUp(keys[0], now: 1_004).isOldestOfTooMany)
      #expect(try await !test.followUp(keys[1], now: 1_004).isOldestOfTooMany)
    }
  }

  @Test func `a cancel of all lists every schedule, and an older request that was read before writes nothing`() async throws {
    try await TestSchedules.with { test in
      let keys = try ["a", "b", "c"].map { try Self.key($0) }
      _ = try await test.write(Self.record(1, due: 9_000), of: keys[0], replacing: .none)
      _ = try await test.write(Self.record(2, due: nil), of: keys[1], replacing: .none)
      let before = try await test.read(keys[2])
      let cancel = Self.record(5, due: nil).newest
      #expect(Set(try await test.cancelAll(keys[0], cancel)) == [keys[0], keys[1]])
      #expect(try await test.cancelAll(try Self.key("a", target: "user:bob"), cancel) == [])
      guard case .changed(let now) = try await test.write(Self.record(4, due: 9_000), of: keys[2], replacing: before) else {
        Issue.record("it was scheduled")
        return
      }
      #expect(now.isMissing && now.floor == cancel)
      // An older cancel of all moves no floor, and a newer one does.
      for (number, floor) in [(3, 5), (7, 7)] as [(UInt64, UInt64)] {
        _ = try await test.cancelAll(keys[0], Self.record(number, due: nil).newest)
        #expect(try await test.read(keys[0]).floor?.revision.offset == floor)
      }
      #expect(
        try await test.write(Self.record(8, due: 9_000), of: keys[2], replacing: try await test.read(keys[2])) == .written(oldest: nil))
      #expect((1...2_000_000).contains(try await test.command("PTTL", "s{0}com.example.shop/user:bob").integer ?? -1))
    }
  }
}
