import EventLoop
import Foundation
import JSON
import Notifications
import TestSupport
import Testing

extension ClusterTests {
  /// The shares of a load run are one run.
  @Suite(.serialized, .inPython, .onlyInAll("it is about time: a load run measures it")) struct SharedLoadTests {
    @Test func `two shares begin together, and their sum has all numbers and each violation`() async throws {
      try await CarillonCommand.with { carillon in
        let up = try carillon.start(CarillonCommand.up)
        let devices = try #require(try JSONValue(parsing: try await up.firstLine())["devices"]?.stringValue)
        let proxy = try carillon.start(
          ["-u", ClusterTests.client("load_proxy.py"), "--devices", devices, "--fault", "repeat", "--each", "20"],
          program: URL(fileURLWithPath: try #require(ClusterFixture.python)))
        let harmful = try #require(try JSONValue(parsing: try await proxy.firstLine())["devices"]?.stringValue)
        let start = WallClock.milliseconds() + 20_000
        let files = (1...2).map { carillon.folder.appendingPathComponent("\($0).json").path }
        let runs = try zip([devices, harmful], files).enumerated().map { index, place in
          try carillon.start(
            [
              "load", "--json", "--fan-out", place.0, "--devices", "8", "--rate", "20", "--duration", "10s", "--run", "both", "--share",
              "\(index + 1)/2", "--start", Timestamp.text(start), "--result", place.1,
            ])
        }
        for run in runs { _ = try await run.result() }
        let harmed = try proxy.outputSoFar.split(separator: "\n").compactMap { try JSONValue(parsing: String($0))["harmed"]?.stringValue }

        let sum = try await carillon.run(["load", "sum", "--json"] + files)
        #expect(sum.status == 1, "it said: \(sum.errors)")
        let lines = try sum.lines.map { try JSONValue(parsing: $0) }
        let report = try #require(lines.last, "it said: \(sum.errors)")
        let found = lines.dropLast()
        #expect(!harmed.isEmpty && found.compactMap { $0["id"]?.stringValue }.sorted() == harmed.sorted(), "it said: \(sum.output)")
        #expect(found.allSatisfy { $0["violation"]?.stringValue == "repeated" })
        #expect(
          report["offered"]?.integerValue == 200 && report["published"]?.integerValue == 200 && report["startedAt"]?.integerValue == start)
        #expect(report["reach"]?.doubleValue == 1 && report["violations"]?["repeated"]?.integerValue == Int64(harmed.count))
        for stage in ["arrived", "acknowledged", "told"] {
          #expect(report["stages"]?[stage]?["count"]?.integerValue == report["pairs"]?["reached"]?.integerValue, "\(stage)")
        }
        #expect(report["shares"]?.elements?.compactMap { $0["published"]?.integerValue } == [100, 100])
        #expect(report["shares"]?.elements?.compactMap { $0["devices"]?.integerValue } == [4, 4])
        #expect(report["processors"]?["this run"]?["processes"]?.integerValue == 2, "\(report["processors"]?.text ?? "none")")
        #expect(report["processors"]?["up"]?["processes"]?.integerValue == 1)
        // What happened in each second is of both.
        let intervals = report["intervals"]?.elements ?? []
        #expect(intervals.reduce(0) { $0 + ($1["published"]?.doubleValue ?? 0) } > 150, "\(intervals)")

        let half = try await carillon.run(["load", "sum", files[0]])
        #expect(half.status == 2 && half.errors.contains("of 2 shares the file of share 2 is missing"), "it said: \(half.errors)")
        let clean = try await carillon.run(["load", "clean", "both"])
        #expect(clean.status == 1 && clean.errors.contains("no device of a run both is registered"), "it said: \(clean.errors)")
        try await proxy.stop()
        try await up.stop()
      }
    }
  }
}
