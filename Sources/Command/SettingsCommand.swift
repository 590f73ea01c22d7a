import Worker

/// `carillon settings`.
enum SettingsCommand {
  static let command: Command = Command(
    "settings", "prints every setting as a table, for the documentation",
    discussion: "Each setting with its key in the configuration file, its flag, its environment variable, its default and what it does.",
    groups: [], examples: [Example("settings > settings.md", "the table that the documentation has, in Markdown")]
  ) { _ in
    StandardOutput.write(Program.commandLine.settingsMarkdown)
    return .done
  }
}
