import Foundation
import JSON
import TestSupport
import Testing

extension ClusterTests {
  /// A load run finds what a cluster does wrong, and nothing else.
  @Suite(
    .serialized,
    .enabled(
      if: ClusterFixture.python != nil, "CARILLON_TEST_PYTHON must name a Python with test-requirements.txt, as Deploy/test makes it"))
  struct LoadTests {
    /// What the proxy does to single notifications, and what the run must call it.
    static let faults = [("none", ""), ("lose", "lost"), ("repeat", "repeated"), ("delay", "late"), ("reorder", "out-of-order")]

    @Test(.timeLimit(.minutes(5)), arguments: faults)
    func `each notification that a proxy harms is reported while the run goes on, and no other`(fault: String, violation: String)
      async throws
    {
      try await CarillonCommand.with { carillon in
        let up = try carillon.start(["up", "--json", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"])
        let devices = try #require(try JSONValue(parsing: try await up.firstLine())["devices"]?.stringValue)
        let proxy = try carillon.start(
          ["-u", ClusterTests.client("load_proxy.py"), "--devices", devices, "--fault", fault],
          program: URL(fileURLWithPath: try #require(ClusterFixture.python)))
        let url = try #require(try JSONValue(parsing: try await proxy.firstLine())["devices"]?.stringValue)
        let run = try await carillon.run(
          [
            "load", "--json", "--fan-out", url, "--devices", "6", "--rate", "25", "--duration", "10s", "--to-users", "0", "--lifetime",
            "30s",
          ], withinSeconds: 240)
        let lines = try run.lines.map { try JSONValue(parsing: $0) }
        let report = try #require(lines.last)
        let harmed = try proxy.outputSoFar.split(separator: "\n").compactMap { try JSONValue(parsing: String($0))["harmed"]?.stringValue }
        // A notification is held until the next one comes, so the last one of a device may have none.
        let found = lines.dropLast().map { "\($0["violation"]?.stringValue ?? "?") \($0["id"]?.stringValue ?? "?")" }
        #expect(Set(found) == Set(harmed.map { "\(violation) \($0)" }), "it said: \(run.errors)")
        #expect(found.count == Set(found).count && harmed.count == (fault == "none" ? 0 : 3))
        #expect(run.status == (fault == "none" ? 0 : 1), "it said: \(run.errors)")
        #expect(report["published"]?.integerValue == 250 && report["pairs"]?["unfinished"]?.integerValue == 0)
        #expect(report["reach"]?.doubleValue == (fault == "lose" ? 0.988 : 1))
        try await proxy.stop()
        try await up.stop()
      }
    }
  }
}
