import Kafka
import Notifications
import Redis
import TestSupport
import Testing
import Worker

@testable import Store
@testable import Transform

/// A Redis that refuses a command is a dependency that is down: its lane waits, says so, and dead-letters nothing.
@Suite struct RefusedCommandTests {
  private static func letters(_ lane: TransformFixture) async throws -> Int {
    let partition = TopicPartition(lane.topics.deadLetters, 0)
    return try await lane.kafka.admin.ends(of: [partition])[partition]?.count ?? 0
  }

  @Test(arguments: ["exists", "zrangebylex", "hset", "hmget", "pexpire"])
  func `a command that the ACL refuses makes the lane wait and dead-letters nothing`(command: String) async throws {
    try await TransformFixture.with { lane in
      let tokens = TransformFixture.tokens(in: [(0, 2)])
      try await lane.register([tokens[0]], for: "ada")
      try await lane.probe.command("ACL", "SETUSER", "default", .text("-\(command)"))
      try await lane.request("user:ada", count: 30)
      try await lane.publishRegistrations([tokens[1]], for: "ada")
      await lane.eventually("the lane is not ready and names the command") {
        !lane.health.isReady && lane.health.json.lowercased().contains(command)
      }
      // It looks less often than it tries a record again.
      let looks = try await lane.looks()
      await lane.eventually("it has looked at Redis again") { try await lane.looks() > looks }
      #expect(!lane.health.isReady)
      #expect(try await Self.letters(lane) == 0)
      try await lane.probe.command("ACL", "SETUSER", "default", .text("+\(command)"))
      await lane.eventually("it resumes by itself") { lane.health.isReady }
      await lane.eventually("every request waits in the mailbox") { try await lane.waiting(tokens[0]) == 30 }
      await lane.eventually("the registration is applied") { try await lane.committed(lane.topics.devices) == 2 }
      #expect(lane.count(.deadLettered) == 0)
      #expect(try await Self.letters(lane) == 0)
    }
  }

  @Test func `a lane that starts with a refused command is not ready until it is allowed`() async throws {
    try await TransformFixture.with { lane in
      try await lane.probe.command("ACL", "SETUSER", "default", "-hexists")
      try await lane.beside(1) { healths in
        await lane.eventually("it names the command") { healths[0].json.contains("hexists") && !healths[0].isReady }
        try await lane.probe.command("ACL", "SETUSER", "default", "+hexists")
        await lane.eventually("it works with Redis") { healths[0].json.contains(#""name":"redis","ready":true"#) && lane.health.isReady }
      }
    }
  }

  /// A device whose state no script can read stops nobody: its own requests are dead letters.
  @Test func `a device of which Redis has something else fails alone`() async throws {
    try await TransformFixture.with { lane in
      let tokens = TransformFixture.tokens(in: [(0, 2)])
      try await lane.register(tokens, for: "ada")
      try await lane.probe.command("SET", .text(TransformFixture.keys.mailbox(tokens[0])), "x")
      for token in tokens { try await lane.request("device:\(token)", count: 3) }
      await lane.eventually("its requests are dead letters") { lane.count(.deadLettered) == 3 }
      await lane.eventually("the other device has its requests") { try await lane.waiting(tokens[1]) == 3 }
      await lane.eventually("all are committed") { try await lane.committed(lane.topics.requests) == 6 }
      await lane.eventually("the lane is ready") { lane.health.isReady }
    }
  }
}
