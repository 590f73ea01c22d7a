/// A subcommand, declared once: its parsing, help and documentation come from this.
public struct Command: Sendable {
  /// The words that call it: `fan-out`, `topics create`.
  public let name: String
  /// What it does, in one phrase for the list of commands.
  let summary: String
  /// Details, for its own help; may be empty.
  let discussion: String
  /// Its arguments besides flags, in order.
  let arguments: [Argument]
  /// Its settings, as its help groups them.
  let groups: [SettingGroup]
  /// Example lines, each with its effect.
  let examples: [Example]
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

/// A line to type, and its effect.
public struct Example: Sendable {
  /// The line after `carillon `.
  let line: String
  /// Its effect.
  let text: String

  /// Makes an example from its parts.
  public init(_ line: String, _ text: String) {
    self.line = line
    self.text = text
  }
}

/// Settings under one heading.
public struct SettingGroup: Sendable {
  /// The heading.
  let title: String
  /// The settings, in the order of the help.
  public var settings: [SettingDeclaration] { common + advanced }
  /// The most used settings, which the short help shows.
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

/// An argument of a command besides its flags.
public struct Argument: Sendable, Hashable {
  /// How often it may be given.
  public enum Count: Sendable, Hashable {
    /// Exactly once.
    case one
    /// Once or not at all.
    case optional
    /// At least once. Only the last argument may be this.
    case many
    /// Any number of times. Only the last argument may be this.
    case any

    /// Whether it may be given several times.
    var isRepeated: Bool { self == .many || self == .any }
    /// Whether it may be missing.
    var isOptional: Bool { self == .optional || self == .any }
  }

  /// Its name in the usage line: `APNS-ID`.
  let name: String
  /// What it is.
  let text: String
  /// How often it may be given.
  let count: Count
  /// The completion that a shell offers.
  let completion: Completion

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

/// The whole program: its commands, and the settings of the configuration file.
public struct CommandLineProgram: Sendable {
  /// Commands under one heading of the help.
  public struct Section: Sendable {
    /// The heading.
    let title: String
    /// The commands, in the order of the help.
    let commands: [Command]

    /// Makes a section.
    public init(_ title: String, _ commands: [Command]) {
      self.title = title
      self.commands = commands
    }
  }

  /// The word to type.
  let name: String
  /// What it is, in one sentence.
  let summary: String
  /// Its version.
  let version: String
  /// Its commands.
  let sections: [Section]

  /// Declares a program. A key that several commands list must mean the same setting in all of them.
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

/// The result of parsing a command line.
public enum Invocation: Sendable {
  /// Run this command with these values.
  case run(Command, SettingValues)
  /// Print this on standard output and end with ``ExitCode/done``: a help text or the version.
  case print(String)
}
