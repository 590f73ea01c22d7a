/// The extent of a command's help.
public enum HelpExtent: Sendable {
  /// Its effect and its most used settings.
  case short
  /// All its settings, with ranges and other names.
  case complete
}

extension CommandLineProgram {
  /// The help of the whole program: its commands.
  public var help: String {
    let width = (commands.map(\.name.count).max() ?? 0) + 2
    var text = "\(name): \(summary)\n\nUsage: \(name) COMMAND [flags]\n"
    for section in sections {
      text += "\n\(section.title)\n"
      for command in section.commands { text += HelpText.row("  \(command.name)", at: width + 2, [command.summary]) }
    }
    text += "\nEverywhere\n"
    let flags = [
      ("--help", "This text; after a command its description and its most used flags."),
      ("--help-all", "All flags of a command with their ranges and other names; without a command, of all commands."),
      ("--version", "The version."),
    ]
    for (flag, effect) in flags { text += HelpText.row("  \(flag)", at: width + 2, [effect]) }
    text += "\nEach flag is also an environment variable and a key of the file given with --config. A flag takes precedence over\n"
    text += "the environment, and the environment over the file.\n"
    return text
  }

  /// The help of all commands that begin with a word, such as `dead-letters`; nil if none has a second word.
  func help(ofAllBeginningWith word: String) -> String? {
    let commands = commands.filter { $0.name.hasPrefix(word + " ") }
    guard !commands.isEmpty else { return nil }
    let width = (commands.map(\.name.count).max() ?? 0) + 4
    let rows = commands.map { HelpText.row("  \($0.name)", at: width, [$0.summary]) }
    return "Usage: \(name) \(word) …\n\n\(rows.joined())\n'\(name) \(commands[0].name) --help' says what a command takes.\n"
  }

  /// The help of one command.
  func help(of command: Command, _ extent: HelpExtent = .short) -> String {
    let words = [name, command.name] + (["[flags]"] + command.arguments.map(\.usage))
    var text = "\(name) \(command.name): \(command.summary)\n\nUsage: \(words.joined(separator: " "))\n"
    if !command.discussion.isEmpty { text += "\n" + HelpText.wrapped(command.discussion, at: 0).joined(separator: "\n") + "\n" }
    if !command.arguments.isEmpty {
      text += "\nArguments\n"
      for argument in command.arguments { text += HelpText.row("  \(argument.name)", at: HelpText.column, [argument.text]) }
    }
    for group in command.groups + [SettingGroup("Everywhere", [Self.configuration])] {
      let settings = extent == .complete ? group.settings : group.common
      if settings.isEmpty { continue }
      text += "\n\(group.title)\n"
      for setting in settings {
        let paragraphs = extent == .complete ? [setting.text, setting.facts] : [setting.text + setting.briefFacts]
        text += HelpText.row("  " + setting.usage, at: HelpText.column, paragraphs)
      }
      if group.title == "Everywhere" { text += helpFlags(command, extent) }
    }
    if !command.examples.isEmpty {
      text += "\nExamples\n"
      for example in command.examples { text += "  # \(example.text)\n  \(name) \(example.line)\n" }
    }
    return text
  }

  private func helpFlags(_ command: Command, _ extent: HelpExtent) -> String {
    let more = command.groups.flatMap(\.advanced).count
    let further = more == 0 ? "The " : "\(more) more \(more == 1 ? "flag" : "flags"), and the "
    let (short, complete) =
      switch extent {
      case .short: ("This text.", further + "range, the environment variable and the key of each flag.")
      case .complete: ("The most used flags only.", "This text.")
      }
    return HelpText.row("  --help", at: HelpText.column, [short]) + HelpText.row("  --help-all", at: HelpText.column, [complete])
  }

  /// All settings as a Markdown table, for the documentation.
  ///
  /// Groups keep their headings. A setting that several commands list appears once, with these commands, and again if its text differs for
  /// some of them.
  public var settingsMarkdown: String {
    var text = ""
    var seen: Set<String> = []
    var titles: [String] = []
    for group in commands.flatMap(\.groups) where !titles.contains(group.title) { titles.append(group.title) }
    for title in titles {
      let settings = commands.flatMap(\.groups).filter { $0.title == title }.flatMap(\.settings)
        .filter { seen.insert("\($0.key) \($0.text)").inserted }
      if settings.isEmpty { continue }
      text +=
        "\(text.isEmpty ? "" : "\n")### \(title)\n\n| key | flag | environment | default | what | commands |\n|---|---|---|---|---|---|\n"
      for setting in settings {
        let users = commands.filter { $0.settings.contains { ($0.key, $0.text) == (setting.key, setting.text) } }
        let cells = [
          "`\(setting.key)`", "`--\(setting.flag)`", setting.isPassedOn ? "" : "`\(setting.environment)`",
          setting.defaultText.map { "`\($0)`" } ?? "", "\(setting.text) Must be \(setting.allowed).",
          users.count == commands.count ? "all" : users.map { "`\($0.name)`" }.joined(separator: ", "),
        ]
        text +=
          "| " + cells.map { $0.split(separator: "|", omittingEmptySubsequences: false).joined(separator: "\\|") }.joined(separator: " | ")
          + " |\n"
      }
    }
    return text
  }
}

extension SettingDeclaration {
  /// The flag with its value's placeholder.
  fileprivate var usage: String { isSwitch ? "--\(flag)" : "--\(flag) \(placeholder ?? "")" }

  /// The allowed values, the default, and the other names.
  fileprivate var facts: String {
    let allowed = isSwitch || isPassedOn || allowed == SettingKind<String>.anyText ? nil : allowed
    let standard = isSwitch ? (defaultText == "true" ? "on; --no-\(flag) turns it off" : nil) : defaultText.map { "default \($0)" }
    let names =
      isPassedOn
      ? "also \(environment.dropLast())NAME, and \(key.dropLast())NAME in the file" : environment
    return [allowed, standard, absentText, names].compactMap { $0 }.joined(separator: "; ")
  }

  /// The default for the short help.
  fileprivate var briefFacts: String {
    if isSwitch { return defaultText == "true" ? " On; --no-\(flag) turns it off." : "" }
    return (absentText.map { " (\($0))" } ?? "") + (defaultText.map { " (default \($0))" } ?? "")
  }

  private var absentText: String? { if case .required = absent { "required" } else { nil } }
}

/// Columns and line breaks of the help.
private enum HelpText {
  static let column = 30
  static let width = 110

  /// A name, and paragraphs in a column beside it. A name that reaches into the column gets its own line.
  static func row(_ name: String, at column: Int, _ paragraphs: [String]) -> String {
    var lines = paragraphs.flatMap { wrapped($0, at: column) }
    if name.count + 2 <= column, !lines.isEmpty {
      let first = lines.removeFirst()
      lines.insert(name + String(repeating: " ", count: column - name.count) + first.drop { $0 == " " }, at: 0)
    } else {
      lines.insert(name, at: 0)
    }
    return lines.joined(separator: "\n") + "\n"
  }

  /// A text in lines that begin at a column.
  static func wrapped(_ text: String, at column: Int) -> [String] {
    var lines: [String] = []
    var line = ""
    for word in text.split(separator: " ") {
      if !line.isEmpty && column + line.count + 1 + word.count > width {
        lines.append(line)
        line = ""
      }
      line += (line.isEmpty ? "" : " ") + word
    }
    if !line.isEmpty { lines.append(line) }
    return lines.map { String(repeating: " ", count: column) + $0 }
  }
}
