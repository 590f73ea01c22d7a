import EventLoop
public import Extensions
import Glibc
import Kafka
import Redis
import Worker

/// The program: its commands, and its exit.
public enum Program {
  static let version = "0.1.0"

  /// The service extensions in this binary.
  @TaskLocal static var extensions: [OwnExtension] = []

  /// Runs the command of this process and exits. It is the first call of a process.
  ///
  /// - Parameter extensions: a team's own service extensions in its binary. Their names must differ.
  public static func main(extensions: [OwnExtension] = []) async -> Never {
    StandardStreams.prepare()
    precondition(Set(extensions.map(\.name)).count == extensions.count, "two extensions have the same name")
    let code: ExitCode
    do throws(UsageError) {
      let arguments = try CommandLineProgram.processArguments()
      code = await Self.$extensions.withValue(extensions) { await run(arguments) }
    } catch {
      code = refuse(error)
    }
    // An extension may have printed text that is still in C's buffer.
    fflush(nil)
    // `exit` would tear down C libraries under running threads, such as one in a hanging Kafka call.
    _exit(code.rawValue)
  }

  static var commandLine: CommandLineProgram {
    CommandLineProgram(
      name: "carillon", summary: "delivers notifications to a fleet of devices, over Kafka and Redis", version: version,
      sections: sections + (extensions.isEmpty ? [] : [.init("Service extensions of this binary", [OwnExtensionCommand.command])]))
  }

  private static let sections: [CommandLineProgram.Section] = [
    .init("Roles", [UpCommand.command, TransformCommand.command, FanOutCommand.command, IngressCommand.command]),
    .init(
      "Tools",
      [
        TopicsCommand.create, PublishCommand.command, DeviceCommand.command, EventsCommand.command, ExplainCommand.command,
        DevicesCommand.command, AuditCommand.command, StatusCommand.command, StatusCommand.lag, LoadCommand.command,
        LoadSumCommand.command, LoadCleanCommand.command, ReplayCommand.command, DeadLetterCommands.list, DeadLetterCommands.show,
        RedriveCommand.redrive, RedriveCommand.discard, ApplicationsCommands.stop, ApplicationsCommands.start,
        ApplicationsCommands.allow, ApplicationsCommands.disallow, ApplicationsCommands.limit, ApplicationsCommands.list,
        CategoriesCommands.publish,
        CategoriesCommands.list, PendingCommand.command, RebuildCommand.command, ExtensionsCommand.check, ExtensionsCommand.attempt,
        TokenCommand.command, TokenCommand.publisher, TokenCommand.createKey, WebCommand.command,
      ]),
    .init("Shell and documentation", [CompletionCommand.command, SettingsCommand.command]),
  ]

  /// Runs the command of the arguments, and reports an error.
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
    if let help = commandLine.help(for: error) { StandardError.plain(help) }
    return .wrongUsage
  }

  /// The exit code for an error.
  static func exitCode(of error: any Error) -> ExitCode {
    switch error {
    case let failure as Failure: failure.code
    case let error as KafkaError where error.code == .invalidConfiguration: .wrongUsage
    case let error as RedisError where [.badAddress, .notInThisVersion, .unsuitableServer].contains(error.code): .wrongUsage
    case let error as EventLoopError where !error.isRetriable: .wrongUsage
    default: .dependencyMissing
    }
  }
}
