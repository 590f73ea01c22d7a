import JSON
import Worker

/// `carillon completion`.
enum CompletionCommand {
  private static let shell = Argument(
    "SHELL", "The shell: \(Shell.allCases.map(\.rawValue).joined(separator: " or ")).",
    completion: .words(Shell.allCases.map(\.rawValue)))
  private static let typed = Argument(
    "WORD", "The words of a line after --: instead of the script it prints what completes the last one.", count: .any)

  static let command: Command = Command(
    "completion", "prints a script that completes commands, flags and values in a shell", arguments: [shell, typed], groups: [],
    examples: [
      Example("completion bash > /etc/bash_completion.d/carillon", "for everybody on this machine"),
      Example("completion zsh > ~/.zfunc/_carillon", "for oneself, where ~/.zfunc stands in $fpath"),
    ]
  ) { values in
    guard let shell = values[shell].first.flatMap(Shell.init) else {
      throw UsageError(
        .wrongValue,
        "'\(PrintedText.echo(values[shell][0]))' is not a known shell: it must be one of "
          + Shell.allCases.map(\.rawValue).joined(separator: ", "))
    }
    let line = values[typed]
    guard !line.isEmpty else {
      StandardOutput.write(Program.commandLine.completionScript(for: shell))
      return .done
    }
    for offer in Program.commandLine.completions(of: line) { StandardOutput.line(offer) }
    return .done
  }
}
