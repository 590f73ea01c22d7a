import EventLoop
import JSON
import TestSupport
import Testing

extension ClusterTests {
  @Suite(
    .serialized,
    .enabled(
      if: ClusterFixture.python != nil, "CARILLON_TEST_PYTHON must name a Python with test-requirements.txt, as Deploy/test makes it"))
  struct CrowdTests {
    @Test func aCrowdEndsAsItShould() async throws {
      try await ClusterFixture.with(.embedded) { cluster in
        _ = try await cluster.transform()
        let devices = try await cluster.fanOut().devices
        let crowd = try await cluster.client(
          client("crowd.py"), ["--devices-url", devices, "--devices", "60", "--requests", "800", "--deadline", "40"])
        try await expectPassed(crowd, withinSeconds: 120)
      }
    }

    @Test(.enabled(if: KafkaFixture.realServers != nil, "\(KafkaFixture.howToGetOne)"))
    func killedWorkersLoseAndRepeatNothing() async throws {
      try await ClusterFixture.with(.real) { cluster in
        let transforms = [try await cluster.transform(), try await cluster.transform()]
        let fanOuts = [try await cluster.fanOut(), try await cluster.fanOut()]
        let crowd = try await cluster.client(
          client("crowd.py"), fanOuts.flatMap { ["--devices-url", $0.devices] } + ["--devices", "200", "--requests", "5000"])
        try await crowd.line(withinSeconds: 120, "has published half") { $0["percent"]?.integerValue == 50 }
        await transforms[0].kill()
        await fanOuts[0].kill()
        try await Task.sleep(for: .seconds(3))
        try await cluster.transform()
        try await expectPassed(crowd, withinSeconds: 180)
      }
    }

    private func expectPassed(_ crowd: ClusterProcess, withinSeconds seconds: Int) async throws {
      let exit = try await crowd.exit(withinSeconds: seconds)
      let result = crowd.lines.last
      print("crowd: \(result?.text ?? "said nothing")")
      guard exit == .exited(0), result?["result"]?.stringValue == "passed" else {
        throw ClusterFailure("the crowd ended with \(exit): \(result?.text ?? crowd.text)")
      }
    }
  }
}
