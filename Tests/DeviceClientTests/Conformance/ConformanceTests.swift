import Foundation
import JSON
import Notifications
import TestSupport
import Testing

/// The rulebook of Tests/Conformance: what a device in any language does with a frame.
@Suite struct ConformanceTests {
  @Test(arguments: ConformanceCases.files)
  func `the library does what the cases say`(file: String) throws {
    let cases = try ConformanceCases.cases(file)
    let differences = try ConformanceCases.differences(cases)
    #expect(!cases.isEmpty && differences.isEmpty, "\(differences.count) differences:\n\(differences.prefix(20).joined(separator: "\n"))")
  }

  @Test(.enabled(if: CarillonJS.deno != nil, CarillonJS.reason))
  func `carillon.js does what the cases say`() async throws {
    try await CarillonCommand.with { command in
      let played = try await CarillonJS.play(ConformanceCases.files.map(ConformanceCases.path), in: command)
      #expect(played.status == 0 && played.output.hasSuffix(" cases, 0 differences\n"), "\(played.output)\(played.errors)")
    }
  }

  /// The same as `Fuzz`: the short form has always the same random frames.
  @Test(.enabled(if: CarillonJS.deno != nil, CarillonJS.reason))
  func `the library and carillon.js do the same with random frames`() async throws {
    let variables = ProcessInfo.processInfo.environment
    let seed = variables["TESTS_FUZZ_SEED"].flatMap { UInt64($0) } ?? (isComplete ? .random(in: 1...(.max)) : 1)
    let count = variables["TESTS_FUZZ_INPUTS"].flatMap { Int($0) } ?? (isComplete ? 100_000 : 10_000)
    try await CarillonCommand.with { command in
      let played = try await CarillonJS.play([try Self.random(seed: seed, count, in: command)], in: command)
      #expect(
        played.status == 0 && played.output.hasSuffix(" cases, 0 differences\n"),
        "again: TESTS_FUZZ_SEED=\(seed) TESTS_FUZZ_INPUTS=\(count)\n\(played.output)\(played.errors)")
    }
  }

  @Test(.enabled(if: CarillonJS.deno != nil, CarillonJS.reason))
  func `cases and random frames find each planted error`() async throws {
    try await CarillonCommand.with { command in
      let files = ConformanceCases.files.map(ConformanceCases.path) + [try Self.random(seed: 1, 2_000, in: command)]
      let planted = ConformanceCases.folder.appendingPathComponent("planted.json").path
      let played = try await CarillonJS.play(files, planted: planted, in: command)
      #expect(played.status == 0 && played.output.hasSuffix(" planted errors, 0 not found\n"), "\(played.output)\(played.errors)")
    }
  }

  @Test(.enabled(if: ClusterFixture.python != nil, CarillonJS.reason))
  func `carillon device does over a real socket what the session scripts say`() async throws {
    let folder = ConformanceCases.folder
    let scripts = try FileManager.default.contentsOfDirectory(atPath: folder.appendingPathComponent("sessions").path).sorted()
    try await CarillonCommand.with { command in
      let words = ["-B", folder.appendingPathComponent("sessions.py").path, "--carillon", CarillonCommand.program.path]
      let played = try await command.run(
        words + scripts.map { folder.appendingPathComponent("sessions/\($0)").path },
        program: URL(fileURLWithPath: try #require(ClusterFixture.python)))
      #expect(played.status == 0 && played.output == "\(scripts.count) scripts, 0 failed\n", "\(played.output)\(played.errors)")
    }
  }

  private static func random(seed: UInt64, _ count: Int, in command: CarillonCommand) throws -> String {
    var random = try RandomCases(seed: seed)
    return try command.file("random.json", JSONValue.array(try random.cases(count)).text)
  }
}
