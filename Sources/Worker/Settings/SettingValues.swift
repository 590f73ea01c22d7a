import JSON

/// The value of each setting of one command, and its arguments.
public struct SettingValues: Sendable {
  struct Entry: Sendable {
    let declaration: SettingDeclaration
    let value: any Sendable
    let source: SettingSource
    /// The texts as they were written; empty for a default.
    let texts: [String]
  }

  var entries: [String: Entry] = [:]
  var order: [String] = []
  var passedOn: [String: [String: String]] = [:]
  var arguments: [String: [String]] = [:]

  /// The value of a setting.
  ///
  /// The command must list the setting. Anything else is a programming error and traps.
  public subscript<Value>(_ setting: Setting<Value>) -> Value {
    guard let entry = entries[setting.declaration.key], let value = entry.value as? Value else {
      preconditionFailure("the command does not list the setting \(setting.declaration.key)")
    }
    return value
  }

  /// The settings of a library's prefix, by their names without the prefix.
  public subscript(_ prefix: PassedOnSettings) -> [String: String] { passedOn[prefix.declaration.library] ?? [:] }

  /// The texts of an argument, in order; empty if it is missing.
  public subscript(_ argument: Argument) -> [String] { arguments[argument.name] ?? [] }

  /// The source of a setting's value.
  public func source<Value>(of setting: Setting<Value>) -> SettingSource {
    entries[setting.declaration.key]?.source ?? .standard
  }

  /// The beginning of an error about a setting's value: where it was given, else its flag.
  public func name<Value>(of setting: Setting<Value>) -> String {
    let source = source(of: setting)
    return source == .standard ? "--\(setting.declaration.flag)" : setting.declaration.named(by: source)
  }

  /// All values that are not defaults, for the log at start: key, text (secrets masked) and source.
  public var given: [(key: String, text: String, source: SettingSource)] {
    order.compactMap { key in
      guard let entry = entries[key], entry.source != .standard else { return nil }
      return (key, entry.declaration.isSecret ? SettingDeclaration.mask : entry.texts.joined(separator: ","), entry.source)
    }
  }
}

extension SettingDeclaration {
  /// The text that replaces a secret.
  static let mask = "••••"

  /// Reads the texts of one source; throws an error that names the wrong text and its place.
  func value(of texts: [String], from source: SettingSource) throws(UsageError) -> any Sendable {
    if let value = read(texts) { return value }
    let shown = isSecret ? Self.mask : PrintedText.echo(texts.joined(separator: ","))
    throw UsageError(.wrongValue, "\(named(by: source)): '\(shown)' is not allowed: it must be \(allowed)")
  }

  /// Where the setting was given, as the beginning of an error. A flag names the setting already; a variable and a line do not.
  func named(by source: SettingSource) -> String { if case .flag = source { "\(source)" } else { "\(source) (\(key))" } }
}
