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
        let shards = Shards(on: loop, StoreConfiguration(server.address), clientName: "test")
        shards.start()
        try await shards.waitUntilUp(withinMilliseconds: 20_000)
        let own = ClusterIdentity(kafka: "one", topicPrefix: "notifications.")
        try await own.claim(shards)
        try await own.claim(shards)
        for other in [
          ClusterIdentity(kafka: "two", topicPrefix: "notifications."), ClusterIdentity(kafka: "one", topicPrefix: "staging."),
          ClusterIdentity(kafka: "", topicPrefix: ""),
        ] {
          do {
            try await other.claim(shards)
            Issue.record("\(other) has claimed it, too")
          } catch let error as RedisError {
            #expect(error.code == .unsuitableServer)
            #expect(error.message.contains("one and its topics notifications."), "it said: \(error.message)")
          }
        }
        shards.close()
      }
      try await task.value
      await loop.close()
    }
  }
}
