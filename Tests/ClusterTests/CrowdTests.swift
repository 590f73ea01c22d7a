import EventLoop
import JSON
import TestSupport
import Testing

extension ClusterTests {
  @Suite(.serialized, .inPython)
  struct CrowdTests {
    @Test(.enabled(if: isComplete || KafkaFixture.realServers == nil, "a crowd is shown on the real Kafka, with killed workers"))
    func aCrowdEndsAsItShould() async throws {
      try await ClusterFixture.with(.embedded) { cluster in
        _ = try await cluster.transform()
        let devices = try await cluster.fanOut().devices
        let crowd = try await cluster.client(
          client("crowd.py"), ["--devices-url", devices, "--devices", "60", "--requests", "800"])
        try await expectPassed(crowd)
      }
    }

    @Test(.onRealKafka)
    func killedWorkersLoseAndRepeatNothing() async throws {
      try await ClusterFixture.with(.real) { cluster in
        let transforms = [try await cluster.transform(), try await cluster.transform()]
        let fanOuts = [try await cluster.fanOut(), try await cluster.fanOut()]
        let crowd = try await cluster.client(
          client("crowd.py"),
          fanOuts.flatMap { ["--devices-url", $0.devices] } + ["--devices", "200", "--requests", isComplete ? "5000" : "2000"])
        try await crowd.line("has published half") { $0["percent"]?.integerValue == 50 }
        await transforms[0].kill()
        await fanOuts[0].kill()
        // The others go on without them.
        try await crowd.line("has published more") { $0["percent"]?.integerValue == 75 }
        try await cluster.transform()
        try await expectPassed(crowd)
      }
    }

    private func expectPassed(_ crowd: ClusterProcess) async throws {
      let exit = try await crowd.exit(hangs: 2)
      let result = crowd.lines.last
      print("crowd: \(result?.text ?? "said nothing")")
      guard exit == .exited(0), result?["result"]?.stringValue == "passed" else {
        throw ClusterFailure("the crowd ended with \(exit): \(result?.text ?? crowd.text)")
      }
    }
  }
}
