import EventLoop
import JSON
import TestSupport
import Testing

extension ClusterTests {
  /// Several processes of a load run are one run, and one that is lost is named.
  @Suite(.serialized, .onlyInAll("it is about time: a load run measures it")) struct SharedLoadTests {
    private static func load(_ cluster: ClusterFixture, _ devices: String, _ flags: [String]) async throws -> ClusterProcess {
      try await cluster.tool(
        ["load", "--json", "--kafka", cluster.kafka, "--redis", cluster.redis, "--topic-prefix", cluster.prefix, "--fan-out", devices]
          + flags)
    }

    @Test(.inPython, arguments: [ClusterKafka.best])
    func `three processes make one load, and the first reports the sum and each violation of the others at once`(broker: ClusterKafka)
      async throws
    {
      try await ClusterFixture.with(broker, isForLoad: true) { cluster in
        try await cluster.transform()
        let devices = try await cluster.fanOut().devices
        let proxy = try await cluster.program(
          ClusterTests.client("load_proxy.py"), ["--devices", devices, "--fault", "repeat", "--each", "20"])
        let listening = try await proxy.line("listens") { $0["devices"] != nil }
        let harmful = try #require(listening["devices"]?.stringValue)
        let first = try await Self.load(
          cluster, devices, ["--run", "three", "--processes", "3", "--devices", "12", "--rate", "30", "--duration", "30s"])
        let harmed = try await Self.load(cluster, harmful, ["--join", "three"])
        let other = try await Self.load(cluster, devices, ["--join", "three"])
        try await first.line("prints a violation") { $0["violation"] != nil }
        // The run still goes on.
        #expect(first.lines.allSatisfy { $0["startedAt"] == nil }, "it said: \(first.text)")
        let otherExit = try await other.exit()
        #expect(try await harmed.exit() == .exited(1), "it said: \(harmed.text)")
        #expect(try await first.exit() == .exited(1), "it said: \(first.text)")

        let ids = Set(proxy.lines.compactMap { $0["harmed"]?.stringValue })
        let found = first.lines.filter { $0["violation"] != nil }
        #expect(!ids.isEmpty && Set(found.compactMap { $0["id"]?.stringValue }) == ids, "it said: \(first.text)")
        #expect(found.allSatisfy { $0["violation"]?.stringValue == "repeated" })

        let report = try #require(first.lines.last { $0["startedAt"] != nil }, "it said: \(first.text)")
        #expect(report["offered"]?.integerValue == 900 && report["published"]?.integerValue == 900)
        #expect(report["reach"]?.doubleValue == 1 && report["violations"]?["repeated"]?.integerValue == Int64(ids.count))
        for stage in ["arrived", "acknowledged", "told"] {
          #expect(report["stages"]?[stage]?["count"]?.integerValue == report["pairs"]?["reached"]?.integerValue, "\(stage)")
        }
        #expect(report["processors"]?["this run"]?["processes"]?.integerValue == 3)
        let processes = report["processes"]?.elements ?? []
        // On a machine that stands still a process is late.
        let isLate = processes.contains { ($0["schedule"]?.doubleValue ?? 1) < 0.99 }
        #expect(otherExit == .exited(0) || isLate && otherExit == .exited(1), "it said: \(other.text)")
        #expect(processes.compactMap { $0["published"]?.integerValue } == [300, 300, 300])
        #expect(processes.compactMap { $0["devices"]?.integerValue } == [4, 4, 4])
        #expect(processes.allSatisfy { $0["gap"] == .null })
        // What happened in each second is of all processes.
        let arrivals = (report["intervals"]?.elements ?? []).reduce(0) { $0 + ($1["published"]?.doubleValue ?? 0) }
        #expect(arrivals > 750, "\(report["intervals"]?.text ?? "none")")

        let late = try await Self.load(cluster, devices, ["--join", "three"])
        #expect(
          try await late.exit() == .exited(2) && late.text.contains("--join: run three is over"),
          "\(late.text)")
      }
    }

    @Test(arguments: [ClusterKafka.best])
    func `a process that is killed in the middle is named, and all that it did not tell counts as not arrived`(broker: ClusterKafka)
      async throws
    {
      try await ClusterFixture.with(broker, isForLoad: true) { cluster in
        try await cluster.transform()
        let devices = try await cluster.fanOut().devices
        let first = try await Self.load(
          cluster, devices,
          ["--run", "torn", "--processes", "2", "--devices", "8", "--rate", "20", "--duration", "30s", "--silence", "6s"])
        let victim = try await Self.load(cluster, devices, ["--join", "torn"])
        await eventually("the run starts") { victim.text.contains("publishing from") }
        let late = try await Self.load(cluster, devices, ["--join", "torn"])
        #expect(try await late.exit() == .exited(2), "\(late.text)")
        #expect(late.text.contains("--join: run torn has started without this process"), "\(late.text)")
        await victim.kill()
        #expect(try await first.exit() == .exited(1), "it said: \(first.text)")
        #expect(first.text.contains("process 2 of 2") && first.text.contains("is silent"), "it said: \(first.text)")

        let report = try #require(first.lines.last { $0["startedAt"] != nil }, "it said: \(first.text)")
        #expect(report["processes"]?[0]?["gap"] == .null && report["processes"]?[0]?["published"]?.integerValue == 300)
        #expect(report["processes"]?[1]?["gap"]?.stringValue == "it fell silent", "\(report["processes"]?.text ?? "none")")
        #expect(report["offered"]?.integerValue == 600 && (report["reach"]?.doubleValue ?? 1) < 1)
        #expect((report["pairs"]?["unfinished"]?.integerValue ?? 0) > 0 && report["good"]?.boolValue == false)

        // Its devices are left, and one command removes them.
        let clean = try await cluster.tool(
          ["load", "clean", "torn", "--kafka", cluster.kafka, "--topic-prefix", cluster.prefix, "--fan-out", devices])
        #expect(try await clean.exit() == .exited(0), "it said: \(clean.text)")
        #expect(clean.text.contains("4 devices unregistered"), "it said: \(clean.text)")
      }
    }
  }
}
