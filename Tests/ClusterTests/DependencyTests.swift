import EventLoop
import Foundation
import JSON
import TestSupport
import Testing

extension ClusterTests {
  /// Kafka or Redis is gone for a while, takes no writes, or refuses a command, `CARILLON_AWAY_SECONDS` long (3 by default).
  @Suite(
    .serialized,
    .enabled(
      if: ClusterFixture.python != nil, "CARILLON_TEST_PYTHON must name a Python with test-requirements.txt, as Deploy/test makes it"),
    .enabled(
      if: ClusterFixture.kafkaFolder != nil, "\(KafkaFixture.howToGetOne)"))
  struct DependencyTests {
    @Test(arguments: ["kafka-killed", "kafka-hangs", "kafka-too-few", "redis-killed", "redis-hangs", "redis-full", "redis-refuses"])
    func workPausesIsNotReadyAndResumesByItself(_ part: String) async throws {
      let seconds = ProcessInfo.processInfo.environment["CARILLON_AWAY_SECONDS"].flatMap { Int($0) } ?? 3
      try await ClusterFixture.with(.embedded) { cluster in
        let folder = try #require(ClusterFixture.kafkaFolder)
        let script = try await cluster.program(
          client("dependencies.py"),
          ["--kafka-folder", folder, "--binary", cluster.carillon(), "--part", part, "--seconds", "\(seconds)"])
        let exit = try await script.exit(withinSeconds: 180 + seconds)
        let result = script.lines.last { $0["result"] != nil }
        guard exit == .exited(0), result?["result"]?.stringValue == "held" else {
          throw ClusterFailure("dependencies.py --part \(part) ended with \(exit): \(script.text)")
        }
        print("\(part): \(result?.text ?? "")")
      }
    }
  }
}
