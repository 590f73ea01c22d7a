import EventLoop
import Foundation
import FoundationNetworking
import JSON
import TestSupport
import Testing

extension ClusterTests {
  /// A load run finds what a cluster does wrong, and nothing else.
  @Suite(.serialized, .inPython, .onlyInAll("it is about time: a load run measures it"))
  struct LoadTests {
    /// What the proxy does to single notifications, and what the run must call it.
    static let faults = [("none", ""), ("lose", "lost"), ("repeat", "repeated"), ("delay", "late"), ("reorder", "out-of-order")]

    @Test(arguments: faults)
    func `each notification that a proxy harms is reported while the run goes on, and no other`(fault: String, violation: String)
      async throws
    {
      try await CarillonCommand.with { carillon in
        let up = try carillon.start(CarillonCommand.up)
        let devices = try #require(try JSONValue(parsing: try await up.firstLine())["devices"]?.stringValue)
        let proxy = try carillon.start(
          ["-u", ClusterTests.client("load_proxy.py"), "--devices", devices, "--fault", fault],
          program: URL(fileURLWithPath: try #require(ClusterFixture.python)))
        let url = try #require(try JSONValue(parsing: try await proxy.firstLine())["devices"]?.stringValue)
        let run = try await carillon.run(
          [
            "load", "--json", "--fan-out", url, "--devices", "6", "--rate", "25", "--duration", "10s", "--to-users", "0", "--lifetime",
            "30s",
          ])
        let lines = try run.lines.map { try JSONValue(parsing: $0) }
        let report = try #require(lines.last)
        let harmed = try proxy.outputSoFar.split(separator: "\n").compactMap { try JSONValue(parsing: String($0))["harmed"]?.stringValue }
        // A notification is held until the next one comes, so the last one of a device may have none.
        let found = lines.dropLast().map { "\($0["violation"]?.stringValue ?? "?") \($0["id"]?.stringValue ?? "?")" }
        #expect(Set(found) == Set(harmed.map { "\(violation) \($0)" }), "it said: \(run.errors)")
        #expect(found.count == Set(found).count && harmed.count == (fault == "none" ? 0 : 3))
        // On a machine that stands still the run itself is late.
        let isKept = (report["schedule"]?.doubleValue ?? 0) >= 0.99
        #expect(run.status == (fault == "none" && isKept ? 0 : 1), "it said: \(run.errors)")
        #expect(report["published"]?.integerValue == 250 && report["pairs"]?["unfinished"]?.integerValue == 0)
        #expect(report["reach"]?.doubleValue == (fault == "lose" ? 0.988 : 1))
        try await proxy.stop()
        try await up.stop()
      }
    }
  }

  /// A load run tells what faults of the workers cost, and that they break no promise.
  @Suite(.serialized, .onlyInAll("it is about time: a load run measures it")) struct LoadFaultTests {
    /// How long the fan-out worker stands still, and how long there is no transform worker, at least.
    private static let (stall, absence): (Duration, Duration) = (.seconds(6), .seconds(2))

    @Test(arguments: [ClusterKafka.best])
    func `a fan-out worker that stands still and a killed transform worker are gaps with their lengths, and nothing is lost`(
      broker: ClusterKafka
    ) async throws {
      try await ClusterFixture.with(broker, isForLoad: true) { cluster in
        let transform = try await cluster.transform()
        let fanOut = try await cluster.fanOut()
        let run = try await cluster.tool(
          [
            "load", "--json", "--kafka", cluster.kafka, "--redis", cluster.redis, "--topic-prefix", cluster.prefix, "--fan-out",
            fanOut.devices, "--devices", "40", "--rate", "40", "--duration", "24s", "--collapsing", "0.2", "--duplicate", "0.05",
          ])
        await eventually("the run publishes") { run.text.contains(": publishing") }
        let admin = transform.lines.compactMap { $0["admin"]?.stringValue }
        let metrics = try #require(URL(string: (admin.first ?? "") + "/metrics"))
        await eventually("a request is taken") {
          String(decoding: try await URLSession.shared.data(from: metrics).0, as: UTF8.self)
            .contains(/carillon_transform_requests_total [1-9]/)
        }
        try await RealTime.pass(.seconds(3))
        let stalled = WallClock.milliseconds()
        await fanOut.signal(SIGSTOP)
        try await RealTime.pass(Self.stall)
        await fanOut.signal(SIGCONT)
        try await RealTime.pass(.seconds(2))
        let killed = WallClock.milliseconds()
        await transform.kill()
        try await RealTime.pass(Self.absence)
        try await cluster.transform()
        _ = try await run.exit()
        let report = try #require(run.lines.last { $0["startedAt"] != nil }, "it said: \(run.text)")

        // Nothing that a promise is about.
        #expect(run.lines.allSatisfy { $0["violation"] == nil }, "it said: \(run.text)")
        #expect(report["published"]?.integerValue == 960 && report["reach"]?.doubleValue == 1)
        #expect(report["pairs"]?["unfinished"]?.integerValue == 0 && report["pairs"]?["untold"]?.integerValue == 0)

        // Both gaps, each with its length. A machine that stands still makes them longer, or one.
        let start = try #require(report["startedAt"]?.integerValue)
        try Self.expectGap(in: report, from: stalled - start, Self.stall)
        try Self.expectGap(in: report, from: killed - start, Self.absence)
        // Those that were due in the first second of the stall, and those of the gaps, are so many of all.
        let arrived = report["stages"]?["arrived"]
        for (percentile, milliseconds) in [("max", 5500.0), ("p99", 4000), ("p90", 1000)] {
          #expect((arrived?[percentile]?.doubleValue ?? 0) >= milliseconds, "\(percentile) of \(arrived?.text ?? "nothing")")
        }

        // The workers' own numbers, of the one that was killed too.
        #expect((report["workerStages"]?["sent"]?["maxAtMost"]?.doubleValue ?? 0) >= 5000)
        #expect((report["workerStages"]?["transformed"]?["count"]?.integerValue ?? 0) >= 500)
        #expect(report["processors"]?["transform"]?["processes"]?.integerValue == 2, "\(report["processors"]?.text ?? "none")")
        #expect(report["processors"]?["fan-out"]?["processes"]?.integerValue == 1)
      }
    }

    /// Expects a stretch of late requests that covers a fault and is about as long.
    private static func expectGap(in report: JSONValue, from milliseconds: Int64, _ length: Duration) throws {
      let (from, seconds) = (Double(milliseconds) / 1000, length / .seconds(1))
      let delays = report["delays"]?.elements ?? []
      // The first request that was due in the fault waited for all of it.
      let delay = delays.first { delay in
        (delay["fromSeconds"]?.doubleValue ?? .infinity) <= from + 0.5 && (delay["toSeconds"]?.doubleValue ?? 0) >= from + seconds - 1.5
      }
      #expect((delay?["longestSeconds"]?.doubleValue ?? 0) >= seconds - 0.5, "from \(from) s: \(report["delays"]?.text ?? "no delays")")
    }
  }
}
