import JSON
import Testing
import Worker

@testable import Command

/// A command line in the test's own process: what the parser makes of it, and why it is refused.
enum Typed {
  /// Why a command line is refused.
  struct Refusal {
    /// The exit code of its process.
    let code: ExitCode
    /// What its process says on standard error, behind the program's name.
    let text: String
    /// The command whose help it names.
    var command: String?
  }

  static let program = Program.commandLine

  /// Parses a command line; the environment has these variables and no others.
  static func parse(_ arguments: [String], _ environment: [String: String] = [:]) throws(UsageError) -> Invocation {
    try program.parse(arguments, environment: environment)
  }

  /// The settings and arguments that its command would run with.
  static func values(_ arguments: [String], _ environment: [String: String] = [:]) throws -> SettingValues {
    guard case .run(_, let values) = try parse(arguments, environment) else { throw UsageError(.unknownCommand, "it only prints") }
    return values
  }

  /// What it prints without running a command: a help text, or the version.
  static func printed(_ arguments: [String]) throws -> String {
    guard case .print(let text) = try parse(arguments) else { throw UsageError(.unknownCommand, "it runs a command") }
    return text
  }

  /// Carries out a command line that is refused before it prints anything.
  ///
  /// Not for commands that Kafka fails in the midst of their reading: their threads are left to the end of their process.
  static func refusal(
    _ arguments: [String], _ environment: [String: String] = [:], _ location: SourceLocation = #_sourceLocation
  ) async throws -> Refusal {
    let invocation: Invocation
    do throws(UsageError) { invocation = try parse(arguments, environment) } catch { return Refusal(error, error.command) }
    guard case .run(let command, let values) = invocation else { throw UsageError(.unknownCommand, "it only prints") }
    do { _ = try await command.run(values) } catch { return Refusal(error, command.name) }
    Issue.record("nothing is wrong with \(arguments)", sourceLocation: location)
    throw UsageError(.unknownCommand, "it is not refused")
  }
}

extension Typed.Refusal {
  fileprivate init(_ error: any Error, _ command: String?) {
    let usage = error as? UsageError
    self.init(
      code: usage == nil ? Program.exitCode(of: error) : .wrongUsage, text: PrintedText.escaped("\(error)"),
      command: usage.map { $0.command ?? command } ?? nil)
  }
}
