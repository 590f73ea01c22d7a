import EventLoop
import JSON
import TestSupport
import Testing

extension ClusterTests {
  @Suite(
    .serialized,
    .enabled(
      if: ClusterFixture.python != nil, "CARILLON_TEST_PYTHON must name a Python with test-requirements.txt, as Deploy/test makes it"))
  struct BadInputTests {
    @Test(arguments: ClusterKafka.available)
    func badRecordsAreAnsweredAndGoodOnesDelivered(_ broker: ClusterKafka) async throws {
      try await expectKept(["--part", "records", "--huge", "1000000", "--huge-key", "1047600"], on: broker)
    }

    @Test func badFramesCloseTheirOwnConnectionOnly() async throws {
      try await expectKept(["--part", "frames"], on: .embedded)
    }

    @Test func closeCodesAreThoseOfTheTable() async throws {
      try await expectKept(["--part", "table"], on: .embedded)
    }

    private func expectKept(_ arguments: [String], on broker: ClusterKafka) async throws {
      try await ClusterFixture.with(broker) { cluster in
        try await cluster.transform()
        let devices = try await cluster.fanOut().devices
        let hasty = try await cluster.fanOut(["--hello", "1s"]).devices
        let bad = try await cluster.client(client("bad_input.py"), ["--devices-url", devices, "--hasty-url", hasty] + arguments)
        let exit = try await bad.exit(withinSeconds: 150)
        guard exit == .exited(0) else { throw ClusterFailure("bad_input.py ended with \(exit): \(bad.text)") }
      }
    }
  }
}
