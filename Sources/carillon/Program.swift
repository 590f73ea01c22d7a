import EventLoop
import Kafka
import Redis
import Worker

/// The program: its commands, and how it ends.
enum Program {
  static let version = "0.1.0"

  static let commandLine: CommandLineProgram = CommandLineProgram(
    name: "carillon", summary: "delivers notifications to a fleet of devices, over Kafka and Redis", version: version,
    sections: [
      .init("Roles", [UpCommand.command, TransformCommand.command, FanOutCommand.command]),
      .init(
        "Tools",
        [
          TopicsCommand.create, PublishCommand.command, DeviceCommand.command, EventsCommand.command, ExplainCommand.command,
          AuditCommand.command, RebuildCommand.command, ExtensionsCommand.check, ExtensionsCommand.attempt,
          TokenCommand.command, TokenCommand.createKey,
        ]),
      .init("Shell and documentation", [CompletionCommand.command, SettingsCommand.command]),
    ])

  /// Runs what the arguments ask for and says how it ended.
  static func run(_ arguments: [String]) async -> ExitCode {
    do throws(UsageError) {
      switch try commandLine.parse(arguments) {
      case .print(let text):
        StandardOutput.write(text)
        StandardOutput.flush()
        return .done
      case .run(let command, let values): return await run(command, values)
      }
    } catch {
      return refuse(error)
    }
  }

  private static func run(_ command: Command, _ values: SettingValues) async -> ExitCode {
    do {
      let code = try await command.run(values)
      StandardOutput.flush()
      return code
    } catch {
      StandardOutput.flush()
      if var usage = error as? UsageError {
        usage.command = usage.command ?? command.name
        return refuse(usage)
      }
      StandardError.line("\(error)")
      return exitCode(of: error)
    }
  }

  private static func refuse(_ error: UsageError) -> ExitCode {
    StandardError.line(error.description)
    if let command = error.command { StandardError.plain("'carillon \(command) --help' says what it takes") }
    return .wrongUsage
  }

  private static func exitCode(of error: any Error) -> ExitCode {
    switch error {
    case let failure as Failure: failure.code
    case let error as KafkaError where error.code == .invalidConfiguration: .wrongUsage
    case let error as RedisError where [.badAddress, .notInThisVersion, .unsuitableServer].contains(error.code): .wrongUsage
    case let error as EventLoopError where !error.isRetriable: .wrongUsage
    default: .dependencyMissing
    }
  }
}
