import Foundation
import TestSupport
import Testing

/// The rules of `carillon.js`, to which play.js plays cases in deno.
enum CarillonJS {
  /// The deno beside the Python of the tests; nil without one.
  static let deno: URL? = {
    let program = ClusterFixture.python.map { URL(fileURLWithPath: $0).deletingLastPathComponent().appendingPathComponent("deno") }
    return program.flatMap { FileManager.default.isExecutableFile(atPath: $0.path) ? $0 : nil }
  }()
  static let reason: Comment = "TESTS_PYTHON must name a Python with test-requirements.txt, as Deploy/test makes it"

  private static let module = ConformanceCases.folder.appendingPathComponent("carillon.js").path
  private static let rules = ConformanceCases.folder.appendingPathComponent("../../Sources/Web/rules.js").path

  /// Plays files of cases; what it says names each difference, and has the first one as a case.
  ///
  /// - Parameter planted: the file of the errors that are planted into copies of the rules, each of which must be found.
  static func play(_ files: [String], planted: String? = nil, in command: CarillonCommand) async throws -> CarillonCommand.Result {
    let player = ConformanceCases.folder.appendingPathComponent("play.js").path
    let flags = ["run", "--no-config", "--allow-read", "--allow-write=\(command.folder.path)", player]
    return try await command.run(
      flags + (planted.map { ["--planted", $0, rules] } ?? []) + [module] + files,
      environment: ["DENO_DIR": command.folder.path, "DENO_NO_UPDATE_CHECK": "1", "NO_COLOR": "1"],
      program: deno ?? CarillonCommand.program)
  }
}
