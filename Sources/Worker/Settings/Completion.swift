/// What a shell offers while somebody types a value.
public enum Completion: Sendable, Hashable {
  /// Nothing: the program does not know the values.
  case nothing
  /// One of these words.
  case words([String])
  /// A path of a file.
  case file
  /// A path of a folder.
  case folder
}

/// A shell with completion.
public enum Shell: String, CaseIterable, Sendable {
  /// Bash 4 or newer.
  case bash
  /// Zsh.
  case zsh
}

extension CommandLineProgram {
  /// Writes a script that completes commands, flags and known values in a shell.
  public func completionScript(for shell: Shell) -> String {
    switch shell {
    case .bash: bashCompletion
    case .zsh: zshCompletion
    }
  }

  /// Flags that may come first instead of a command.
  static let standaloneFlags = ["--help", "--help-all", "--version"]
}

extension Command {
  /// The words of the command's name.
  var words: [String] { name.split(separator: " ").map(String.init) }

  /// The command's settings and the one of every command.
  var completedSettings: [SettingDeclaration] { settings + [CommandLineProgram.configuration.declaration] }
}

extension SettingDeclaration {
  /// The flags to type for it. A switch that is on may also be turned off.
  var typedFlags: [String] { ["--\(flag)"] + (isSwitch && defaultText == "true" ? ["--no-\(flag)"] : []) }
}

/// A text as one word of a shell.
func quoted(_ text: String) -> String {
  "'" + text.split(separator: "'", omittingEmptySubsequences: false).joined(separator: #"'\''"#) + "'"
}
