import JSON

/// The value of each setting of one command, and its arguments.
public struct SettingValues: Sendable {
  struct Entry: Sendable {
    let declaration: SettingDeclaration
    let value: any Sendable
    let source: SettingSource
    /// As it was written; empty for a default.
    let texts: [String]
  }

  var entries: [String: Entry] = [:]
  var order: [String] = []
  var passedOn: [String: [String: String]] = [:]
  var arguments: [String: [String]] = [:]

  /// The value of a setting.
  ///
  /// The command must list the setting: anything else is a mistake of the program, and traps.
  public subscript<Value>(_ setting: Setting<Value>) -> Value {
    guard let entry = entries[setting.declaration.key], let value = entry.value as? Value else {
      preconditionFailure("the command does not list the setting \(setting.declaration.key)")
    }
    return value
  }

  /// The settings under a prefix that are passed on, by their name without the prefix.
  public subscript(_ prefix: PassedOnSettings) -> [String: String] { passedOn[prefix.prefix] ?? [:] }

  /// What was given for an argument, in order; empty when it was left out.
  public subscript(_ argument: Argument) -> [String] { arguments[argument.name] ?? [] }

  /// Where the value of a setting comes from.
  public func source<Value>(of setting: Setting<Value>) -> SettingSource {
    entries[setting.declaration.key]?.source ?? .standard
  }

  /// What an error about the value of a setting begins with: where it was given, else its flag.
  public func name<Value>(of setting: Setting<Value>) -> String {
    let source = source(of: setting)
    return source == .standard ? "--\(setting.declaration.flag)" : setting.declaration.named(by: source)
  }

  /// What was given in another place than the defaults, for the log at start: key, text (secrets masked) and source.
  public var given: [(key: String, text: String, source: SettingSource)] {
    order.compactMap { key in
      guard let entry = entries[key], entry.source != .standard else { return nil }
      return (key, entry.declaration.isSecret ? SettingDeclaration.mask : entry.texts.joined(separator: ","), entry.source)
    }
  }
}

extension SettingDeclaration {
  /// What stands for a secret wherever it would be shown.
  static let mask = "••••"

  /// Reads the texts of one source, or says where which of them is wrong.
  func value(of texts: [String], from source: SettingSource) throws(UsageError) -> any Sendable {
    if let value = read(texts) { return value }
    let shown = isSecret ? Self.mask : PrintedText.echo(texts.joined(separator: ","))
    throw UsageError(.wrongValue, "\(named(by: source)): '\(shown)' is not allowed: it must be \(allowed)")
  }

  /// Where the setting was given, as an error begins. A flag names the setting already; a variable and a line do not.
  func named(by source: SettingSource) -> String { if case .flag = source { "\(source)" } else { "\(source) (\(key))" } }
}
