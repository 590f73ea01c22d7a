import EventLoop
import Redis
import TestSupport
import Testing

@testable import Store

@Suite struct ClusterIdentityTests {
  private static func identity(
    kafka: String = "one", prefix: String = "notifications.", buckets: Int = 4, name: String = "carillon"
  ) -> ClusterIdentity { ClusterIdentity(kafka: kafka, topicPrefix: prefix, buckets: buckets, name: name) }

  private static func with(
    buckets: Int = 4, _ body: @escaping @Sendable (_ shards: Shards, _ probe: RedisProbe) async throws -> Void
  ) async throws {
    try await withRedis { server in
      try await RedisProbe.with(server.address) { probe in
        let loop = EventLoop(name: "identity")
        let task = Task(executorPreference: loop) {
          var configuration = StoreConfiguration(server.address, buckets: buckets)
          configuration.callDeadlineMilliseconds = hangMilliseconds
          let shards = Shards(on: loop, configuration, clientName: "test")
          shards.start()
          defer { shards.close() }
          try await shards.waitUntilUp(withinMilliseconds: hangMilliseconds)
          try await body(shards, probe)
        }
        let result = await task.result
        await loop.close()
        try result.get()
      }
    }
  }

  /// What a claim, a verification or a start says of a Redis that is another cluster's.
  private static func refusal(_ body: () async throws -> Void) async -> String? {
    do {
      try await body()
      return nil
    } catch let error as RedisError where error.code == .unsuitableServer {
      return error.message
    } catch {
      Issue.record("it is refused as unsuitable, and not by \(error)")
      return nil
    }
  }

  @Test func `a Redis belongs to the first cluster that uses it and to no other`() async throws {
    try await Self.with { (shards, _) async throws in
      let own = Self.identity()
      #expect(try await own.verify(shards) == .nobodys)
      #expect(try await ClusterIdentity.standing(in: shards) == nil, "whoever verifies claims nothing")
      try await own.claim(shards)
      try await own.claim(shards)
      #expect(try await own.verify(shards) == .own)
      for (other, words) in [
        (Self.identity(kafka: "two"), "the Kafka cluster one, and not two"),
        (Self.identity(prefix: "staging."), "--topic-prefix notifications., and not staging."),
        (Self.identity(buckets: 2), "--buckets 4, and not 2"), (Self.identity(name: "other"), "--cluster carillon, and not other"),
      ] {
        #expect(await Self.refusal { try await other.claim(shards) }?.contains(words) == true)
        #expect(await Self.refusal { _ = try await other.verify(shards) }?.contains(words) == true)
        #expect(await Self.refusal { _ = try await other.join(shards) { true } }?.contains(words) == true)
      }
      #expect(try await ClusterIdentity.standing(in: shards) == own)
    }
  }

  /// Programs of the layouts 1 to 4, each of which reads the one before, and a cluster on its way from layout to layout.
  @Test func `a program reads the oldest layout of a cluster, leaves newer ones alone, and skips none`() async throws {
    @Sendable func program(_ newest: Int) -> ClusterIdentity {
      ClusterIdentity(kafka: "one", topicPrefix: "notifications.", buckets: 4, name: "carillon", layouts: max(1, newest - 1)...newest)
    }
    let allowed: [ClosedRange<Int>: Set<Int>] = [1...1: [1, 2], 1...2: [1, 2], 2...2: [2, 3], 2...3: [2, 3], 3...3: [3, 4]]
    try await Self.with { (shards, probe) async throws in
      try await program(1).claim(shards)
      #expect(try await ClusterIdentity.standing(in: shards)?.layouts == 1...1)
      for (layouts, programs) in allowed {
        try await probe.command(
          "HSET", "cluster", "layout", .integer(Int64(layouts.upperBound)), "needs", .integer(Int64(layouts.lowerBound)))
        for newest in 1...4 {
          let refusal = await Self.refusal { _ = try await program(newest).join(shards) { true } }
          #expect((refusal == nil) == programs.contains(newest), "\(newest) in \(layouts): \(refusal ?? "it joins")")
          if let refusal {
            #expect(refusal.contains("the layouts \(layouts.lowerBound) to \(layouts.upperBound)"))
            #expect(refusal.contains("reads \(max(1, newest - 1)) to \(newest)"))
            #expect(refusal.contains(newest < layouts.lowerBound ? "start a newer program" : "no layout may be skipped"))
          }
        }
        #expect(try await ClusterIdentity.standing(in: shards)?.layouts == layouts, "nobody raises the numbers by starting")
      }
    }
  }

  /// Else a worker with other settings could claim it before it is rebuilt, and the right ones would be refused.
  @Test func `a Redis that has lost its buckets is claimed by nobody who joins`() async throws {
    try await Self.with { (shards, _) async throws in
      #expect(try await !Self.identity(buckets: 2).join(shards) { false })
      #expect(try await ClusterIdentity.standing(in: shards) == nil)
      #expect(try await Self.identity().join(shards) { true }, "a new one is")
      #expect(try await ClusterIdentity.standing(in: shards) == Self.identity())
    }
  }

  @Test func `what an earlier version has claimed is completed by those who have its buckets`() async throws {
    try await Self.with(buckets: 2) { (shards, probe) async throws in
      try await probe.command("HSET", "cluster", "kafka", "one", "prefix", "notifications.")
      for bucket in 0..<4 { try await probe.command("HSET", .text("k{\(bucket)}"), "i", "x") }
      let told = await Self.refusal { _ = try await Self.identity(buckets: 2).join(shards) { false } }
      #expect(told?.contains("more buckets than --buckets 2") == true)
      #expect(try await Self.identity().verify(shards) == .partly)
      #expect(try await ClusterIdentity.standing(in: shards)?.layouts == nil)
      for bucket in 2..<4 { try await probe.command("DEL", .text("k{\(bucket)}")) }
      #expect(try await Self.identity(buckets: 2).join(shards) { false })
      #expect(try await ClusterIdentity.standing(in: shards) == Self.identity(buckets: 2))
    }
  }

  @Test(arguments: ["key", "kafka", "buckets", "layout", "needs"]) func `an identity that cannot be read is told by its key`(damage: String)
    async throws
  {
    try await Self.with { (shards, probe) async throws in
      try await Self.identity().claim(shards)
      switch damage {
      case "key":
        try await probe.command("DEL", "cluster")
        try await probe.command("SET", "cluster", "x")
      case "kafka": try await probe.command("HDEL", "cluster", "kafka")
      case "layout": try await probe.command("HSET", "cluster", "layout", "0")
      case "needs": try await probe.command("HDEL", "cluster", "needs")
      default: try await probe.command("HSET", "cluster", "buckets", "99999999999999999999")
      }
      do {
        _ = try await Self.identity().join(shards) { true }
        Issue.record("nobody knows whose it is")
      } catch let error as StoreError { #expect(error.code == .faulty && error.message.contains("cluster")) }
    }
  }
}
