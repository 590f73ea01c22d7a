/// Wrong usage or configuration: what the person gave cannot be understood as it stands.
///
/// A retry never helps; the command ends with ``ExitCode/wrongUsage``. The text says where the mistake stands and what is allowed there.
public struct UsageError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The mistakes that can be made.
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
    /// An argument that nothing asks for.
    case unexpectedArgument
    /// A line of the configuration file that is not of its form, or a key that stands twice.
    case malformedFile
    /// The configuration file cannot be read.
    case unreadableFile
    /// Values that are allowed each, but not together; thrown by commands.
    case contradiction
  }

  /// The kind of mistake.
  public var code: Code
  /// What is wrong and what to do, in one line; never a secret. What was typed stands in it as `PrintedText.echo` gives it.
  public var description: String
  /// The command that was to run, to point at its help.
  public var command: String?

  /// Makes an error from its parts.
  public init(_ code: Code, _ description: String, command: String? = nil) {
    self.code = code
    self.description = description
    self.command = command
  }
}

/// Where a value was given.
public enum SettingSource: Sendable, Hashable, CustomStringConvertible {
  /// On the command line, by this flag as it was written.
  case flag(String)
  /// In this environment variable.
  case environment(String)
  /// In the configuration file, at this line.
  case file(String, line: Int)
  /// Nowhere: it is the default.
  case standard

  /// As an error begins: `--window`, `CARILLON_WINDOW`, `carillon.conf:12`, `default`.
  public var description: String {
    switch self {
    case .flag(let flag): flag
    case .environment(let name): name
    case .file(let path, let line): "\(path):\(line)"
    case .standard: "default"
    }
  }
}
