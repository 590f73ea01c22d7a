import EventLoop
import Notifications
import Redis
import TestSupport
import Testing

@testable import Store

/// Workers and single keys on a real Redis.
@Suite struct WorkersTests {
  private func with(password: String? = nil, _ body: @escaping @Sendable (Place) async throws -> Void) async throws {
    try await withRedis(settings: password.map { ["--requirepass", $0] } ?? []) { server in
      var server = server.address
      server.password = password
      let address = server
      try await RedisProbe.with(address) { probe in
        let place = Place(probe)
        var configuration = StoreConfiguration(address, buckets: 4)
        configuration.callDeadlineMilliseconds = hangMilliseconds
        try await place.connect(configuration)
        do { try await body(place) } catch {
          await place.close()
          throw error
        }
        await place.close()
      }
    }
  }

  private actor Place: LoopActor {
    nonisolated let loop = EventLoop(name: "workers")
    nonisolated let redis: RedisProbe
    private var shards: Shards?
    private let mends = Mends()

    private final class Mends { var keys: [String] = [] }

    init(_ redis: RedisProbe) { self.redis = redis }

    /// The keys that held something else.
    var mended: [String] { mends.keys }

    func connect(_ configuration: StoreConfiguration) async throws {
      let shards = Shards(on: loop, configuration, clientName: "test")
      shards.onMended = { [mends] in mends.keys.append($0) }
      self.shards = shards
      shards.start()
      try await shards.waitUntilUp(withinMilliseconds: hangMilliseconds)
    }

    private func some() throws -> Shards { try #require(shards) }

    func beat(_ name: Name, started: Int64 = 1) async throws {
      try await Workers(some()).beat(WorkerReport(name: name, roles: ["transform"], version: "1", started: started, written: 2))
    }
    func leave(_ name: Name, started: Int64 = 1) async throws { try await Workers(some()).leave(name, started: started) }
    func claim(_ name: Name) async throws -> Int32 {
      try await Lanes(some()).claim(name: name, lifetimeMilliseconds: 600_000, partitions: 2).partition
    }
    func beatAll(_ members: String..., forgottenMilliseconds: Int = 60_000) async throws -> GroupHeartbeats.Answer {
      try await GroupHeartbeats(some(), group: "g").beat(members, forgottenMilliseconds: forgottenMilliseconds)
    }
    func claimSilent(_ silent: [String: Int64]) async throws -> [String] {
      try await GroupHeartbeats(some(), group: "g").claim(silent)
    }
    func leaveGroup(_ members: String...) async throws { try await GroupHeartbeats(some(), group: "g").leave(members) }
    func lanes() async throws -> [Lanes.Listing] { try await Lanes(some()).list() }
    func list() async throws -> [Workers.Listing] { try await Workers(some()).list() }

    func deviceKey(_ token: String) throws -> String { try some().keys.device(token) }
    func mailboxKey(_ token: String) throws -> String { try some().keys.mailbox(token) }
    func mailbox(_ token: String) async throws -> Population.Mailbox? { try await Population(some()).mailbox(token) }
    func page(from place: UInt64) async throws -> (next: UInt64, counts: Population.Counts) {
      try await Population(some()).page(from: place, keys: 100)
    }
    func state() async throws -> ServerState { try await some().serverState() }

    func close() async {
      shards?.close()
      shards = nil
      Task.detached { [loop] in await loop.close() }
    }
  }

  @Test func aWorkerIsListedUntilItLeaves() async throws {
    try await with { place in
      #expect(try await place.list().isEmpty)
      try await place.beat("b")
      try await place.beat("a")
      try await place.beat("b")
      let found = try await place.list()
      #expect(found.map(\.name) == ["a", "b"])
      #expect(found.allSatisfy { !$0.isSilent && $0.report?.roles == ["transform"] && $0.report?.name == $0.name })
      try await place.leave("a")
      #expect(try await place.list().map(\.name) == ["b"])
      #expect(try await place.redis.command("HLEN", "{workers}reports").integer == 1)
    }
  }

  @Test func whoeverEndsTakesNoReportOfAnotherProcessAway() async throws {
    try await with { place in
      try await place.beat("twin", started: 1_700_000_000_000)
      try await place.beat("twin", started: 1_700_000_000_001)
      try await place.leave("twin", started: 1_700_000_000_000)
      #expect(try await place.list().map(\.name) == ["twin"])
      try await place.leave("twin", started: 1_700_000_000_001)
      #expect(try await place.list().isEmpty)
    }
  }

  @Test(arguments: ["x", "[]", "{}", "7", "{\"started\":\"1\"}"]) func `a report that cannot be read goes with its worker`(
    _ broken: String
  ) async throws {
    try await with { place in
      try await place.beat("a")
      try await place.redis.command("HSET", "{workers}reports", "a", .text(broken))
      try await place.leave("a")
      #expect(try await place.list().isEmpty)
    }
  }

  @Test func aLaneTakesAPartitionWhateverElseLiesAmongTheLanes() async throws {
    try await with { place in
      try await place.redis.command("ZADD", "lanes", "inf", "somebody else's", "inf", "-1:x", "inf", "99999999999999999999:y")
      #expect(try await place.claim("a/0") == 0)
      #expect(try await place.claim("a/1") == 1)
    }
  }

  @Test func aSilentWorkerIsSeenAndThenForgotten() async throws {
    try await with { place in
      try await place.beat("gone")
      try await place.redis.command("ZINCRBY", "workers", .integer(-20_000), "gone")
      let silent = try #require(try await place.list().first)
      #expect(silent.isSilent && silent.silentMilliseconds >= 20_000 && silent.report?.version == "1")
      try await place.redis.command("ZINCRBY", "workers", .integer(-Workers.forgottenMilliseconds), "gone")
      #expect(try await place.list().isEmpty)
      try await place.beat("other")
      #expect(try await place.redis.command("ZCARD", "workers").integer == 1)
      #expect(try await place.redis.command("HEXISTS", "{workers}reports", "gone").integer == 0)
    }
  }

  @Test func noMoreWorkersAreKeptThanTheMaximumAndThoseThatLiveStay() async throws {
    try await with { place in
      try await place.beat("living")
      let time = try #require(try await place.redis.command("ZSCORE", "workers", "living").text.flatMap { Double($0) })
      for number in 0..<Workers.maximum + 50 {
        try await place.redis.command("ZADD", "workers", .integer(Int64(time) - 1_000 - Int64(number)), .text("w\(number)"))
        try await place.redis.command("HSET", "{workers}reports", .text("w\(number)"), "x")
      }
      try await place.beat("living")
      try await place.beat("another")
      let found = try await place.list()
      #expect(found.count == Workers.maximum && found.contains { $0.name == "living" } && found.contains { $0.name == "another" })
      #expect(try await place.redis.command("HLEN", "{workers}reports").integer == Int64(Workers.maximum))
      #expect(found.first { $0.name == "w0" }?.report == nil, "what lies there is no report")
    }
  }

  @Test func whatSomebodyElseHasPutThereIsNoReportAndFailsNobody() async throws {
    try await with { place in
      try await place.beat("a")
      try await place.redis.command("HSET", "{workers}reports", "a", .bytes([UInt8](repeating: 0xFF, count: 100_000)))
      let found = try await place.list()
      #expect(found.map(\.name) == ["a"] && found.first?.report == nil)
      try await place.redis.command("SET", "workers", "x")
      await #expect(throws: StoreError.self) { try await place.list() }
    }
  }

  @Test(arguments: ["workers", "{workers}reports", "lanes"])
  func `a heartbeat removes what lies in the place of the heartbeats and tells its key`(key: String) async throws {
    try await with { place in
      try await place.beat("a")
      _ = try await place.claim("a/0")
      try await place.redis.command("DEL", .text(key))
      try await place.redis.command("SET", .text(key), "x")
      try await place.beat("a")
      #expect(try await place.claim("b/0") == (key == "lanes" ? 0 : 1))
      #expect(try await place.list().map(\.name) == ["a"])
      #expect(await place.mended == [key.contains("workers") ? "workers" : key])
    }
  }

  @Test func aSilentMemberIsClaimedOnceAndNotIfItHasBeatenMeanwhile() async throws {
    try await with { place in
      let first = try await place.beatAll("a.1", "a.2")
      #expect(first.new == 2 && first.beats == ["a.1": first.time, "a.2": first.time])
      try await place.redis.command("ZINCRBY", "members/g", "-2000", "a.1")
      let second = try await place.beatAll("b.1")
      #expect(second.new == 1 && second.beats == ["a.1": first.time - 2_000, "a.2": first.time, "b.1": second.time])
      #expect(try await place.claimSilent(["a.1": first.time - 2_000, "a.2": first.time - 1, "c": 1]) == ["a.1"])
      #expect(try await place.claimSilent(["a.1": first.time - 2_000]).isEmpty, "another worker has it")
      #expect(try await place.beatAll("a.1", "a.2").new == 1, "it learns that it was claimed")
      try await place.leaveGroup("a.1", "a.2")
      #expect(try await place.beatAll("b.1").beats.keys.sorted() == ["b.1"])
      #expect(try await place.redis.command("EXISTS", "members/other").integer == 0)
    }
  }

  @Test func aMemberWhoseSessionHasEndedIsForgotten() async throws {
    try await with { place in
      let time = try await place.beatAll("a", "b", "c", "d").time
      try await place.redis.command(
        "ZADD", "members/g", .integer(time - 60_000), "a", .integer(time + 3_600_000), "b", "inf", "c")
      #expect(try await place.beatAll("e").beats.keys.sorted() == ["d", "e"])
      try await place.redis.command("SET", "members/g", "x")
      #expect(try await place.beatAll("e").beats.keys.sorted() == ["e"])
    }
  }

  @Test func devicesAndMailboxesAreCountedByTheirKeys() async throws {
    let tokens = ["a", "b", "c", "d"].map { String(repeating: $0, count: 64) }
    let (aa, bb, cc, dd) = (tokens[0], tokens[1], tokens[2], tokens[3])
    try await with { place in
      let owner = Owner(user: 1, since: 2, application: 3).bytes
      let presence = Presence(partition: 1, generation: 2).bytes
      try await place.redis.command("HSET", .text(place.deviceKey(aa)), "u", .bytes(owner), "p", .bytes(presence))
      try await place.redis.command("HSET", .text(place.deviceKey(bb)), "u", .bytes(owner), "p", "-")
      try await place.redis.command("HSET", .text(place.deviceKey(cc)), "r", "x")
      try await place.redis.command("SET", .text(place.deviceKey(dd)), "x")
      func revision(_ time: Int64) -> RedisArgument {
        .bytes(withUnsafeBytes(of: time.bigEndian, Array.init) + [UInt8](repeating: 0, count: 12))
      }
      try await place.redis.command(
        "HSET", .text(place.mailboxKey(aa)), revision(1_700_000_000_500), "x", revision(1_700_000_000_000), "y")
      try await place.redis.command("HSET", .text(place.mailboxKey(bb)), "no revision", "x")
      try await place.redis.command("SET", .text(place.mailboxKey(dd)), "x")
      #expect(try await place.mailbox(aa) == Population.Mailbox(entries: 2, oldest: 1_700_000_000_000))
      #expect(try await place.mailbox(bb) == Population.Mailbox(entries: 1, oldest: nil))
      #expect(try await place.mailbox(cc) == Population.Mailbox(entries: 0, oldest: nil))
      #expect(try await place.mailbox(dd) == nil)
      try await place.redis.command("SET", "other", "x")
      var (counts, next) = (Population.Counts(), UInt64(0))
      repeat {
        let page = try await place.page(from: next)
        (counts, next) = (counts + page.counts, page.next)
      } while next != 0
      #expect(counts.keys == (try await place.redis.command("DBSIZE").integer) && counts.isExact)
      #expect(counts.devices == 2 && counts.connected == 1 && counts.mailboxes == 2 && counts.entries == 3)
      let estimate = counts.scaled(toKeys: counts.keys * 10)
      #expect(estimate.devices == 20 && estimate.entries == 30 && !estimate.isExact)
    }
  }

  @Test func aHeartbeatFromTheFutureIsSilentAndIsForgottenByTheNext() async throws {
    try await with { place in
      for name: Name in ["near", "ahead", "endless"] { try await place.beat(name) }
      try await place.redis.command("ZINCRBY", "workers", "10000", "near")
      try await place.redis.command("ZINCRBY", "workers", "77000", "ahead")
      try await place.redis.command("ZADD", "workers", "inf", "endless")
      let found = try await place.list()
      #expect(found.map(\.name) == ["ahead", "endless", "near"] && found.map(\.isSilent) == [true, true, false])
      try await place.beat("other")
      #expect(try await place.list().map(\.name) == ["near", "other"])
      #expect(try await place.redis.command("HLEN", "{workers}reports").integer == 2)
    }
  }

  @Test func aLaneWhoseHeartbeatLiesInTheFutureIsSilent() async throws {
    try await with { place in
      let time = try #require(try await place.redis.command("TIME").array?.first?.text.flatMap { Int64($0) }) * 1_000
      try await place.redis.command(
        "ZADD", "lanes", .integer(time + 5_000), "1:near", .integer(time + 60_000), "2:ahead", "inf", "3:endless")
      let found = try await place.lanes()
      #expect(found.map(\.name) == ["near", "ahead", "endless"])
      #expect(found.map { $0.silentMilliseconds < 120_000 } == [true, false, false])
    }
  }

  @Test func noMoreLanesAreListedThanTheMaximum() async throws {
    try await with { place in
      let script = "for i = 1, 20000 do redis.call('ZADD', KEYS[1], i, i .. ':x') end"
      try await place.redis.command("EVAL", .text(script), "1", "lanes")
      #expect(try await place.lanes().count == 10_000)
    }
  }

  @Test func aServerIsToldWithoutItsPassword() async throws {
    try await with(password: "open sesame") { place in
      let state = try await place.state()
      #expect(state.isPrimary == true && state.policy == "noeviction" && state.evictedKeys == 0 && state.errors.isEmpty)
      #expect(state.usedMemory ?? 0 > 0 && !state.address.isEmpty && !"\(state)".contains("sesame"))
    }
  }
}
