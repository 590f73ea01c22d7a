import EventLoop
import Redis
import TestSupport
import Testing

@testable import Store

/// The processor time of a real Redis.
@Suite struct ServerProcessorTests {
  private actor Reader: LoopActor {
    nonisolated let loop = EventLoop(name: "processor")

    func read(_ configuration: StoreConfiguration) async throws -> [Double?] {
      let shards = Shards(on: loop, configuration, clientName: "test")
      shards.start()
      defer { shards.close() }
      try await shards.waitUntilUp(withinMilliseconds: hangMilliseconds)
      return [try await shards.processorSeconds(), try await shards.processorSeconds()]
    }
  }

  @Test func `the processor time of Redis grows`() async throws {
    try await withRedis { server in
      let reader = Reader()
      var configuration = StoreConfiguration(server.address, buckets: 4)
      configuration.callDeadlineMilliseconds = hangMilliseconds
      let seconds = try await reader.read(configuration)
      await reader.loop.close()
      let first = try #require(seconds[0])
      #expect(try #require(seconds[1]) >= first && first > 0)
    }
  }
}
