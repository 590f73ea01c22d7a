import EventLoop
import Glibc
import TestSupport
import Testing

extension ClusterTests {
  /// How long devices hear nothing when a transform worker goes.
  @Suite(.serialized, .onRealKafka, .onlyInAll("it is about time: how long devices hear nothing")) struct SilenceTests {
    private static let (devices, perSecond) = (12, 120)
    private static let bound: Int64 = 2_500

    /// Runs a stream of requests, and gives for each part of it the longest silence of any device, beside how long the machine stood still.
    private func silences(
      _ parts: [(String, @Sendable (ClusterFixture, inout [ClusterProcess]) async throws -> Void)]
    ) async throws -> [(part: String, silence: Int64, still: Int64)] {
      try await ClusterFixture.with(.real) { cluster in
        var workers = [try await cluster.transform(), try await cluster.transform()]
        let fleet = try Fleet(Self.devices, url: try await cluster.fanOut().devices)
        let publisher = SteadyPublisher()
        try await fleet.start()
        try await fleet.until("all devices are connected") { $0.allSatisfy(\.isConnected) }
        let load = Task {
          try await publisher.run(cluster.kafka, topic: cluster.prefix + "requests", tokens: fleet.tokens, perSecond: Self.perSecond)
        }
        var found: [(part: String, silence: Int64, still: Int64)] = []
        for (name, part) in parts {
          // The group has formed, and everybody is heard.
          try await settle(fleet)
          let (began, still) = (RealTime.now(), fleet.overslept)
          try await part(cluster, &workers)
          try await settle(fleet)
          let silence = fleet.read().map { Fleet.longestPause($0.shownAt.filter { $0 >= began - 500 }) }.max() ?? 0
          found.append((name, silence, fleet.overslept - still))
          print("\(name): a device heard nothing for \(silence) ms; the machine stood still for \(fleet.overslept - still) ms")
        }
        await publisher.stop()
        let published = try await load.value
        try await fleet.showEachOnce(published)
        print("silences: \(published.map(\.count).reduce(0, +)) requests, each shown once")
        await fleet.close()
        await publisher.loop.close()
        return found
      }
    }

    /// Waits until each device has been heard for three seconds without a longer pause.
    private func settle(_ fleet: Fleet) async throws {
      let began = RealTime.now()
      try await fleet.until("all devices are heard again") { logs in
        let now = RealTime.now()
        let from = max(began, now - 3_000)
        return now - began >= 3_000
          && logs.allSatisfy { log in
            let times = log.shownAt.suffix(200).filter { $0 >= from }
            return times.count > 3 && Fleet.longestPause([from] + times + [now]) < 1_000
          }
      }
    }

    private static func undisturbed(_: ClusterFixture, _: inout [ClusterProcess]) async throws { try await RealTime.pass(.seconds(10)) }

    private static func kill(_ cluster: ClusterFixture, _ workers: inout [ClusterProcess]) async throws {
      await workers.removeFirst().kill()
      // Longer than Kafka's own session would take.
      try await RealTime.pass(.seconds(8))
      workers.append(try await cluster.transform())
    }

    private static func standStill(_: ClusterFixture, _ workers: inout [ClusterProcess]) async throws {
      await workers[0].signal(SIGSTOP)
      try await RealTime.pass(.seconds(10))
      await workers[0].signal(SIGCONT)
    }

    private static func end(_: ClusterFixture, _ workers: inout [ClusterProcess]) async throws {
      let worker = workers.removeFirst()
      await worker.signal(SIGTERM)
      #expect(try await worker.exit() == .exited(0))
    }

    @Test func `no device hears nothing for more than two and a half seconds when a transform worker is killed`() async throws {
      let found = try await silences([("undisturbed", Self.undisturbed)] + (1...10).map { ("kill \($0)", Self.kill) })
      let late = found.filter { $0.silence > Self.bound + $0.still }
      #expect(late.isEmpty)
    }

    @Test func `a transform worker that stands still, or ends in order, is replaced as fast`() async throws {
      let found = try await silences([
        ("undisturbed", Self.undisturbed), ("a worker stands still and wakes", Self.standStill), ("a worker ends in order", Self.end),
      ])
      #expect(found.allSatisfy { $0.silence <= Self.bound + $0.still })
    }
  }
}
