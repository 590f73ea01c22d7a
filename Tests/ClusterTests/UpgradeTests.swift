import Foundation
import JSON
import TestSupport
import Testing

extension ClusterTests {
  /// Workers that are replaced one by one, by the newest program and by the former one, while the cluster works.
  ///
  /// The nemesis does it, and its devices, its producer and its two judges are those of its other faults: see README.md beside this file.
  /// `TESTS_UPGRADE` has further arguments for it.
  @Suite(
    .serialized, .inPython, .onlyInAll("it builds the former program, and replaces workers for minutes"), .withOwnBrokers,
    .withFormerProgram)
  struct UpgradeTests {
    @Test func `an upgrade and a downgrade under load lose, repeat, outdate and delay nothing`() async throws {
      let given = ProcessInfo.processInfo.environment["TESTS_UPGRADE"]?.split(separator: " ").map(String.init) ?? []
      print("the former program is built, unless .build/former has it")
      let build = try await FormerProgram.run([], hangs: 12)
      let former = try #require(build.status == 0 ? build.lines.last : nil, "\(build.errors)")
      // Upgrade, downgrade, upgrade: the first two while requests are published.
      let plan = ["--faults-of", "exchange", "--faults", "3", "--minutes", "3", "--requests", "9000"]
      try await nemesisHolds(["--former", former] + plan + given, minutes: 10) { result in
        #expect(result["injected"]?["exchange"] == 3)
      }
    }
  }

  /// The script that builds the former program.
  enum FormerProgram {
    static func run(_ arguments: [String], hangs: Int = 1) async throws -> CarillonCommand.Result {
      try await CarillonCommand.with { carillon in
        let process = try carillon.start(arguments, program: URL(fileURLWithPath: client("../former")))
        return try await process.result(hangs: hangs)
      }
    }
  }
}

extension Trait where Self == ConditionTrait {
  /// A test that builds the former program.
  static var withFormerProgram: ConditionTrait {
    .enabled("the history of this clone must have the commit that Tests/ClusterTests/former names") {
      try await ClusterTests.FormerProgram.run(["--check"]).status == 0
    }
  }
}
