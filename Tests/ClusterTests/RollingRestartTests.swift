import EventLoop
import Foundation
import Glibc
import JSON
import TestSupport
import Testing

extension ClusterTests {
  /// Workers that go and come while devices are connected and requests flow.
  @Suite(.serialized, .onlyInAll("it is about time: how fast devices come back")) struct RollingRestartTests {
    private static let perLane = 25
    private static let lanes = 2

    /// Two fan-out workers at one port, as behind a balancer: the kernel shares connections among those who listen.
    private func fanOuts(_ cluster: ClusterFixture, perSecond: Int) async throws -> (
      first: ClusterProcess, second: ClusterProcess, flags: [String]
    ) {
      let flags = ["--lanes", "\(Self.lanes)", "--reconnects-per-second", "\(perSecond)", "--reconnect", "0s"]
      let first = try await cluster.fanOut(flags)
      let address = first.devices.dropFirst("ws://".count).prefix { $0 != "/" }
      let again = flags + ["--listen", String(address)]
      return (first, try await cluster.fanOut(again), again)
    }

    @Test func aRollingRestartLosesAndRepeatsNothingAndKeepsTheCeiling() async throws {
      try await ClusterFixture.with(.best) { cluster in
        var transforms = [try await cluster.transform(), try await cluster.transform()]
        let (first, second, flags) = try await fanOuts(cluster, perSecond: Self.perLane)
        let fleet = try Fleet(200, url: first.devices)
        let publisher = SteadyPublisher()
        try await fleet.start()
        try await fleet.until("all devices are connected") { $0.allSatisfy(\.isConnected) }
        let load = Task {
          try await publisher.run(cluster.kafka, topic: cluster.prefix + "requests", tokens: fleet.tokens, perSecond: 100)
        }
        // On the embedded broker each rebalance takes seconds.
        for number in transforms.indices.prefix(KafkaFixture.realServers == nil ? 1 : 2) {
          try await restart(transforms[number])
          transforms[number] = try await cluster.transform()
        }
        var report: [String] = []
        for worker in [first, second] {
          let before = fleet.read().map(\.welcomes.count)
          let began = RealTime.now()
          try await restart(worker)
          let took = RealTime.now() - began
          try await cluster.fanOut(flags)
          try await fleet.until("all devices are connected again") { $0.allSatisfy(\.isConnected) }
          let returns = zip(fleet.read(), before).flatMap { $0.welcomes.dropFirst($1) }
          let most = Fleet.mostInASecond(returns)
          report.append("\(returns.count) devices went in \(took) ms and came back, at most \(most) in a second")
          // A tenth more for what this machine delays and catches up, and what comes at once after it stood still.
          let ceiling = Self.perLane * Self.lanes
          #expect(most <= ceiling * 11 / 10 + ceiling * Int(Fleet.longestPause(returns)) / 1000)
          #expect(returns.count >= 40, "the other worker had its share of the devices")
        }
        await publisher.stop()
        let published = try await load.value
        try await fleet.showEachOnce(published)
        let logs = fleet.read()
        let codes = Set(logs.flatMap(\.ends).map(\.code))
        #expect(codes == [4007], "devices leave only because they are told to")
        print(
          "rolling restart: \(published.map(\.count).reduce(0, +)) requests, each shown once; \(report.joined(separator: "; ")); "
            + "\(logs.map(\.knownAgain).reduce(0, +)) came again and were known; ceiling \(Self.perLane * Self.lanes) a second")
        await fleet.close()
        await publisher.loop.close()
      }
    }

    /// SIGTERM: not ready at once, and an end in order.
    private func restart(_ worker: ClusterProcess) async throws {
      let line = try #require(worker.lines.first { $0["admin"] != nil })
      let admin = try #require(line["admin"]?.stringValue)
      let port = try #require(admin.split(separator: ":").last.flatMap { Int($0) })
      await worker.signal(SIGTERM)
      let deadline = RealTime.now() + 3000
      // A machine that stands still takes the worker's time, too: it has a little of its own until the tenth answer after the deadline.
      var late = 0
      // The admin server closes with the process: who finds it gone has found the worker not ready.
      while isReady(port) {
        if RealTime.now() > deadline { late += 1 }
        try #require(late < 10, "\(worker.name) was still ready three seconds after SIGTERM")
        await pause()
      }
      let exit = try await worker.exit()
      guard exit == .exited(0) else { throw ClusterFailure("\(worker.name) ended with \(exit)") }
    }

    private func isReady(_ port: Int) -> Bool {
      guard let socket = try? RawSocket(port: port) else { return false }
      try? socket.send("GET /readyz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
      return String(decoding: (try? socket.readToEnd()) ?? [], as: UTF8.self).hasPrefix("HTTP/1.1 200")
    }

    @Test func devicesOfAKilledWorkerAreServedAgainAsSoonAsTheyHaveReconnected() async throws {
      try await ClusterFixture.with(.best) { cluster in
        try await cluster.transform()
        let (first, _, _) = try await fanOuts(cluster, perSecond: 1000)
        let fleet = try Fleet(300, url: first.devices)
        let publisher = SteadyPublisher()
        try await fleet.start()
        try await fleet.until("all devices are connected") { $0.allSatisfy(\.isConnected) }
        let load = Task {
          try await publisher.run(cluster.kafka, topic: cluster.prefix + "requests", tokens: fleet.tokens, perSecond: 200)
        }
        try await RealTime.pass(.seconds(1))
        let before = fleet.read().map(\.welcomes.count)
        let (killed, overslept) = (RealTime.now(), fleet.overslept)
        await first.kill()
        try await fleet.until("the killed worker's devices have noticed") { logs in
          logs.contains { !$0.ends.isEmpty }
        }
        try await fleet.until("all devices are connected again") { $0.allSatisfy(\.isConnected) }
        let still = fleet.overslept - overslept
        await publisher.stop()
        let published = try await load.value
        try await fleet.showEachOnce(published)
        let returns = zip(fleet.read(), before).flatMap { $0.welcomes.dropFirst($1) }.map { $0 - killed }.sorted()
        #expect(returns.count >= 60)
        print(
          "kill -9 of a fan-out worker: \(returns.count) devices were welcomed again after \(returns[returns.count / 2]) ms (median), "
            + "\(returns[returns.count * 99 / 100]) ms (99 %), \(returns.last ?? 0) ms (the last); "
            + "\(published.map(\.count).reduce(0, +)) requests, each shown once")
        #expect((returns.last ?? 0) < 20_000 + still, "nothing ran for \(still) ms")
        await fleet.close()
        await publisher.loop.close()
      }
    }
  }
}
