import Worker

/// `carillon settings`.
enum SettingsCommand {
  static let command: Command = Command(
    "settings", "prints every setting as a table, for the documentation",
    discussion: "Each setting with its key in the configuration file, its flag, its environment variable, its default and what it does.",
    groups: [SettingGroup("Form", [markdown])],
    examples: [Example("settings --markdown > settings.md", "the table that the documentation has")]
  ) { _ in
    // The only format so far; the flag allows others later.
    StandardOutput.write(Program.commandLine.settingsMarkdown)
    return .done
  }

  private static let markdown = Setting("settings.markdown", .boolean, default: true, "As Markdown tables, one for each group of settings.")
}
