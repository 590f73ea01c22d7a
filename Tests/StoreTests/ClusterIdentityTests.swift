import EventLoop
import Redis
import TestSupport
import Testing

@testable import Store

@Suite struct ClusterIdentityTests {
  @Test func aRedisBelongsToTheFirstClusterThatUsesItAndToNoOther() async throws {
    try await withRedis { server in
      let loop = EventLoop(name: "identity")
      let task = Task(executorPreference: loop) {
        var configuration = StoreConfiguration(server.address)
        configuration.callDeadlineMilliseconds = 60_000
        let shards = Shards(on: loop, configuration, clientName: "test")
        shards.start()
        try await shards.waitUntilUp(withinMilliseconds: 20_000)
        let own = ClusterIdentity(kafka: "one", topicPrefix: "notifications.")
        #expect(try await !own.verify(shards))
        #expect(try await ClusterIdentity.standing(in: shards) == nil, "whoever verifies claims nothing")
        try await own.claim(shards)
        try await own.claim(shards)
        #expect(try await own.verify(shards))
        for other in [
          ClusterIdentity(kafka: "two", topicPrefix: "notifications."), ClusterIdentity(kafka: "one", topicPrefix: "staging."),
          ClusterIdentity(kafka: "", topicPrefix: ""),
        ] {
          for isClaim in [true, false] {
            do {
              if isClaim { try await other.claim(shards) } else { _ = try await other.verify(shards) }
              Issue.record("it is \(other)'s, too")
            } catch let error as RedisError {
              #expect(error.code == .unsuitableServer)
              #expect(error.message.contains("one and its topics notifications."), "it said: \(error.message)")
            }
          }
        }
        shards.close()
      }
      try await task.value
      await loop.close()
    }
  }
}
