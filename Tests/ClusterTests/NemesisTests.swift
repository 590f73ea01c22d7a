import EventLoop
import Foundation
import JSON
import TestSupport
import Testing

extension ClusterTests {
  /// A cluster of real processes under a seeded plan of faults: see README.md beside this file.
  ///
  /// `TESTS_NEMESIS` has further arguments for it, such as `--seed 7 --minutes 30 --requests 500000 --faults 400`, and
  /// `TESTS_NEMESIS_MINUTES` how long the whole may then take.
  @Suite(.serialized, .inPython, .onlyInAll("a nemesis takes minutes"), .withOwnBrokers)
  struct NemesisTests {
    @Test func faultsLoseRepeatOutdateAndDelayNothing() async throws {
      let environment = ProcessInfo.processInfo.environment
      let pages = ClusterTests.hasChromium ? ["--pages", "20"] : []
      let given = pages + (environment["TESTS_NEMESIS"]?.split(separator: " ").map(String.init) ?? [])
      try await nemesisHolds(given, minutes: environment["TESTS_NEMESIS_MINUTES"].flatMap { Int($0) } ?? 6)
    }
  }

  /// Throws what the nemesis said unless everything held.
  ///
  /// - Parameters:
  ///   - minutes: how long it may take.
  ///   - expect: gets its last line.
  static func nemesisHolds(_ arguments: [String], minutes: Int, _ expect: @Sendable (JSONValue) -> Void = { _ in }) async throws {
    try await ClusterFixture.with(.embedded) { cluster in
      let folder = try #require(ClusterFixture.kafkaFolder)
      let nemesis = try await cluster.program(
        client("nemesis"), ["--json", "--kafka-folder", folder, "--binary", cluster.carillon()] + arguments)
      let exit = try await nemesis.exit(hangs: max(1, minutes * 60 / Int(hangDeadline.components.seconds)))
      let result = nemesis.lines.last { $0["result"] != nil }
      print("nemesis: \(result?.text ?? "said nothing")")
      guard exit == .exited(0), let result, result["result"]?.stringValue == "held" else {
        // The violations come first: what reports this may show only its beginning.
        let violations = nemesis.lines.filter { $0["violation"] != nil }.map(\.text).joined(separator: "\n")
        throw ClusterFailure("the nemesis ended with \(exit): \(violations)\n\(nemesis.text)")
      }
      expect(result)
    }
  }
}
