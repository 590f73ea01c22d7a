import EventLoop
import Glibc
import TestSupport
import Testing

extension ClusterTests {
  /// Transform workers that are killed, stand still, or end while requests flow, on a Kafka with static members.
  @Suite(.serialized, .onRealKafka) struct SilentWorkerTests {
    /// A session that does not end while a test waits: what others take over, they take because they have removed the silent member. The
    /// workers must know how long it is: who was not removed is forgotten with it.
    private static let endlessSession = ["--session-timeout", "5m", "--kafka.max.poll.interval.ms", "1500000"]

    /// Devices that show a steady stream of requests, beside workers that come and go.
    private struct Stream {
      let cluster: ClusterFixture
      let fleet: Fleet
      let publisher = SteadyPublisher()
      private let load: Task<[[String]], any Error>

      init(_ cluster: ClusterFixture, devices: Int, perSecond: Int) async throws {
        self.cluster = cluster
        let fleet = try Fleet(devices, url: try await cluster.fanOut().devices)
        self.fleet = fleet
        try await fleet.start()
        try await fleet.until("all devices are connected") { $0.allSatisfy(\.isConnected) }
        load = Task { [publisher] in
          try await publisher.run(cluster.kafka, topic: cluster.prefix + "requests", tokens: fleet.tokens, perSecond: perSecond)
        }
        try await goesOn("requests are shown")
      }

      /// Waits until each device has shown something more, of whatever partition its requests are in.
      func goesOn(_ what: String) async throws {
        let before = fleet.read().map(\.shownAt.count)
        try await fleet.until(what) { logs in zip(logs, before).allSatisfy { $0.shownAt.count >= $1 + 3 } }
      }

      /// Ends it, and expects that each request was shown once. Returns how many there were.
      func end() async throws -> Int {
        await publisher.stop()
        let published = try await load.value
        try await fleet.showEachOnce(published)
        await fleet.close()
        await publisher.loop.close()
        return published.map(\.count).reduce(0, +)
      }
    }

    private static func removed(_ process: ClusterProcess) -> Int {
      process.text.split(separator: "\n").count { $0.contains("the silent lanes have left the group") }
    }

    @Test func anotherWorkerTakesThePartitionsOfASilentOneWhichJoinsAgainWhenItWakes() async throws {
      try await ClusterFixture.with(.real) { cluster in
        let killed = try await cluster.transform(Self.endlessSession + ["--lanes", "2"])
        let named = Self.endlessSession + ["--worker", "second"]
        let second = try await cluster.transform(named)
        let stream = try await Stream(cluster, devices: 12, perSecond: 60)
        await killed.kill()
        await eventually("the killed worker's lanes are removed") { Self.removed(second) == 1 }
        try await stream.goesOn("requests of all partitions are shown without the killed worker")

        let third = try await cluster.transform(Self.endlessSession)
        try await stream.goesOn("requests are shown")
        await second.signal(SIGSTOP)
        await eventually("the worker that stands still is removed") { Self.removed(third) == 1 }
        try await stream.goesOn("requests of all partitions are shown without the worker that stands still")
        await second.signal(SIGCONT)
        await eventually("it learns that it was removed") { second.text.contains("this worker had been silent") }
        // It has joined again, or nobody would read the other's partitions.
        await third.signal(SIGTERM)
        #expect(try await third.exit() == .exited(0))
        try await stream.goesOn("the worker that stood still has all partitions")

        // Nobody is left to remove it.
        await second.kill()
        try await cluster.transform(named)
        try await stream.goesOn("the next worker with its name has its partitions")
        let count = try await stream.end()
        print("silent workers: \(count) requests, each shown once")
      }
    }
  }
}
