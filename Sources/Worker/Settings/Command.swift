/// A subcommand, declared once: its parsing, its help and its rows in the documentation come from this.
public struct Command: Sendable {
  /// The words that call it: `fan-out`, `topics create`.
  public let name: String
  /// What it does, in one phrase for the list of commands.
  public let summary: String
  /// More about it, for its own help; may be empty.
  public let discussion: String
  /// What it takes beside flags, in order.
  public let arguments: [Argument]
  /// Its settings, as its help groups them.
  public let groups: [SettingGroup]
  /// Lines to type, each with what it does.
  public let examples: [Example]
  /// Runs it.
  public let run: @Sendable (SettingValues) async throws -> ExitCode

  /// Declares a command.
  public init(
    _ name: String, _ summary: String, discussion: String = "", arguments: [Argument] = [], groups: [SettingGroup],
    examples: [Example] = [],
    run: @escaping @Sendable (SettingValues) async throws -> ExitCode
  ) {
    let keys = groups.flatMap(\.settings).map(\.key)
    precondition(Set(keys).count == keys.count, "the command \(name) lists a setting twice")
    let flags = groups.flatMap(\.settings).map(\.flag)
    precondition(Set(flags).count == flags.count, "two settings of the command \(name) have the same flag")
    self.name = name
    self.summary = summary
    self.discussion = discussion
    self.arguments = arguments
    self.groups = groups
    self.examples = examples
    self.run = run
  }

  var settings: [SettingDeclaration] { groups.flatMap(\.settings) }
}

/// A line to type, and what it does.
public struct Example: Sendable {
  /// The line after `carillon `.
  public let line: String
  /// What it does.
  public let text: String

  /// Makes an example from its parts.
  public init(_ line: String, _ text: String) {
    self.line = line
    self.text = text
  }
}

/// Settings under one heading.
public struct SettingGroup: Sendable {
  /// The heading.
  public let title: String
  /// The settings, in the order of the help.
  public var settings: [SettingDeclaration] { common + advanced }
  /// Those that nearly everybody needs, which the short help shows.
  let common: [SettingDeclaration]
  /// The rest, which only the complete help shows.
  let advanced: [SettingDeclaration]

  /// Groups settings.
  public init(_ title: String, _ settings: [any DeclaredSetting], advanced: [any DeclaredSetting] = []) {
    self.title = title
    common = settings.map(\.declaration)
    self.advanced = advanced.map(\.declaration)
  }
}

/// What a command takes beside flags.
public struct Argument: Sendable, Hashable {
  /// How many of it.
  public enum Count: Sendable, Hashable {
    /// Exactly one.
    case one
    /// One or none.
    case optional
    /// At least one; only the last argument may be this.
    case many
    /// Any number, none included; only the last argument may be this.
    case any

    /// Whether there may be several.
    var isRepeated: Bool { self == .many || self == .any }
    /// Whether there may be none.
    var isOptional: Bool { self == .optional || self == .any }
  }

  /// As it stands in the usage line: `APNS-ID`.
  public let name: String
  /// What it is.
  public let text: String
  /// How many of it.
  public let count: Count
  /// What a shell may offer for it.
  public let completion: Completion

  /// Declares an argument.
  public init(_ name: String, _ text: String, count: Count = .one, completion: Completion = .nothing) {
    self.name = name
    self.text = text
    self.count = count
    self.completion = completion
  }

  var usage: String {
    switch count {
    case .one: name
    case .optional: "[\(name)]"
    case .many: "\(name)…"
    case .any: "[\(name)…]"
    }
  }
}

/// The whole program: its commands, and the settings that the configuration file may have.
public struct CommandLineProgram: Sendable {
  /// Commands under one heading of the help.
  public struct Section: Sendable {
    /// The heading.
    public let title: String
    /// The commands, in the order of the help.
    public let commands: [Command]

    /// Makes a section.
    public init(_ title: String, _ commands: [Command]) {
      self.title = title
      self.commands = commands
    }
  }

  /// What is typed.
  public let name: String
  /// What it is, in one sentence.
  public let summary: String
  /// Its version.
  public let version: String
  /// Its commands.
  public let sections: [Section]

  /// Declares a program. A key that several commands list must mean the same setting everywhere.
  public init(name: String, summary: String, version: String, sections: [Section]) {
    self.name = name
    self.summary = summary
    self.version = version
    self.sections = sections
    var seen: [String: SettingDeclaration] = [:]
    for declaration in commands.flatMap(\.settings) {
      if let other = seen[declaration.key] {
        precondition(other.flag == declaration.flag && other.allowed == declaration.allowed, "two settings have the key \(declaration.key)")
      }
      seen[declaration.key] = declaration
    }
  }

  /// All commands.
  public var commands: [Command] { sections.flatMap(\.commands) }
}

/// What the command line asks for.
public enum Invocation: Sendable {
  /// Run this command with these values.
  case run(Command, SettingValues)
  /// Print this on standard output and end with ``ExitCode/done``: a help text or the version.
  case print(String)
}
