/// Wrong usage or configuration.
///
/// A retry never helps. The command ends with ``ExitCode/wrongUsage``. The text says where the mistake is and what is allowed there.
public struct UsageError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The kinds of mistakes.
  public enum Code: Sendable, Hashable {
    /// No such subcommand, or none was given.
    case unknownCommand
    /// No such flag.
    case unknownFlag
    /// No such key in the configuration file.
    case unknownKey
    /// A flag that needs a value has none, or a switch has one that it cannot take.
    case missingValue
    /// A value is not one of those allowed.
    case wrongValue
    /// A required setting or argument is missing.
    case missing
    /// An argument that the command does not take.
    case unexpectedArgument
    /// A malformed line of the configuration file, or a repeated key.
    case malformedFile
    /// The configuration file cannot be read.
    case unreadableFile
    /// Values that are allowed alone, but not together; thrown by commands.
    case contradiction
  }

  /// The kind of mistake.
  public var code: Code
  /// What is wrong and what to do, in one line without secrets. Typed text appears as `PrintedText.echo` gives it.
  public var description: String
  /// The command that was to run, so that the message can name its help.
  public var command: String?

  /// Makes an error from its parts.
  public init(_ code: Code, _ description: String, command: String? = nil) {
    self.code = code
    self.description = description
    self.command = command
  }
}

/// The source of a value.
public enum SettingSource: Sendable, Hashable, CustomStringConvertible {
  /// On the command line, by this flag as it was written.
  case flag(String)
  /// In this environment variable.
  case environment(String)
  /// In the configuration file, at this line.
  case file(String, line: Int)
  /// No source: the value is the default.
  case standard

  /// The source as the beginning of an error: `--window`, `CARILLON_WINDOW`, `carillon.conf:12`, `default`.
  public var description: String {
    switch self {
    case .flag(let flag): flag
    case .environment(let name): name
    case .file(let path, let line): "\(path):\(line)"
    case .standard: "default"
    }
  }
}

extension CommandLineProgram {
  /// The line that names the help of an error's command: the complete one if the error is about a flag that the short one lacks.
  public func help(for error: UsageError) -> String? {
    guard let name = error.command else { return nil }
    let words = Set(error.description.split { !($0.isLetter || $0.isNumber || $0 == "-") })
    let advanced = commands.first { $0.name == name }?.groups.flatMap(\.advanced) ?? []
    let isInShort = !advanced.contains { words.contains("--\($0.flag)") }
    return "'\(self.name) \(name) \(isInShort ? "--help" : "--help-all")' says what it takes"
  }
}
