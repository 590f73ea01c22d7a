/// What a shell may offer where somebody begins to type a value.
public enum Completion: Sendable, Hashable {
  /// Nothing: only the person knows it.
  case nothing
  /// One of these words.
  case words([String])
  /// A path of a file.
  case file
  /// A path of a folder.
  case folder
}

/// A shell that completes what is typed.
public enum Shell: String, CaseIterable, Sendable {
  /// Bash 4 or newer.
  case bash
  /// Zsh.
  case zsh
}

extension CommandLineProgram {
  /// A script that teaches a shell the commands, their flags and what is known of their values.
  public func completionScript(for shell: Shell) -> String {
    switch shell {
    case .bash: bashCompletion
    case .zsh: zshCompletion
    }
  }

  /// What may stand for a command as the first word.
  static let standaloneFlags = ["--help", "--help-all", "--version"]
}

extension Command {
  /// The words that call it.
  var words: [String] { name.split(separator: " ").map(String.init) }

  /// Its settings and the one of every command.
  var completedSettings: [SettingDeclaration] { settings + [CommandLineProgram.configuration.declaration] }
}

extension SettingDeclaration {
  /// What may be typed for it: a switch that is on may also be turned off.
  var typedFlags: [String] { ["--\(flag)"] + (isSwitch && defaultText == "true" ? ["--no-\(flag)"] : []) }
}

/// A text as one word of a shell.
func quoted(_ text: String) -> String {
  "'" + text.split(separator: "'", omittingEmptySubsequences: false).joined(separator: #"'\''"#) + "'"
}
