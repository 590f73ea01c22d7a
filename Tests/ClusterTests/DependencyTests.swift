import EventLoop
import Foundation
import JSON
import TestSupport
import Testing

extension ClusterTests {
  /// Kafka or Redis is gone for a while, takes no writes, or refuses a command.
  @Suite(.serialized, .inPython, .withOwnBrokers)
  struct DependencyTests {
    /// What goes away and comes back in the short form: one after the other, from the same workers.
    static let short = ["redis-full", "redis-refuses", "redis-hangs", "redis-killed", "kafka-hangs", "kafka-killed"]
    /// In the complete form, `TESTS_AWAY_SECONDS` long (3 by default): each from workers of its own, which then must end in their time.
    static let complete = ["kafka-killed", "kafka-hangs", "kafka-too-few", "redis-killed", "redis-hangs", "redis-full", "redis-refuses"]

    @Test func workPausesIsNotReadyAndResumesByItself() async throws {
      let text = try await Self.run(Self.short, [])
      for part in Self.short { #expect(Self.result(of: part, text) == "held", "\(text)") }
    }

    @Test(.onlyInAll("it is about time: workers that are told to end have so many seconds"), arguments: complete)
    func workersEndInTheirTimeWhateverIsGone(_ part: String) async throws {
      let seconds = ProcessInfo.processInfo.environment["TESTS_AWAY_SECONDS"] ?? "3"
      let text = try await Self.run([part], ["--seconds", seconds, "--timed"])
      #expect(Self.result(of: part, text) == "held", "\(text)")
    }

    private static func run(_ parts: [String], _ flags: [String]) async throws -> String {
      try await ClusterFixture.with(.embedded) { cluster in
        let folder = try #require(ClusterFixture.kafkaFolder)
        let script = try await cluster.program(
          client("dependencies.py"),
          ["--kafka-folder", folder, "--binary", cluster.carillon(), "--part", parts.joined(separator: ",")] + flags)
        _ = try await script.exit(hangs: parts.count + 1)
        return script.text
      }
    }

    /// What became of a part: `held`, or the promise that was broken.
    private static func result(of part: String, _ text: String) -> String {
      let said = text.split(separator: "\n").compactMap { try? JSONValue(parsing: String($0)) }.last { $0["part"]?.stringValue == part }
      return said?["promise"]?.stringValue ?? said?["result"]?.stringValue ?? "it did not begin"
    }
  }
}
