/// A file of settings for one purpose, such as the load of a run. Its keys are the flags of one group, without dashes.
///
/// It has the syntax of the configuration file. Each setting that was given in another way keeps its value.
public struct SettingsProfile: Sendable {
  private let file: ConfigurationFile

  /// Parses the text of a profile.
  ///
  /// - Parameter name: its file or its name, for errors.
  public init(_ name: String, text: String) throws(UsageError) { file = try ConfigurationFile(path: name, text: text) }

  /// Parses a file.
  public init(_ file: InputFile) throws(UsageError) { self.file = try ConfigurationFile(file) }

  /// Fills the settings of the groups that have no value of their own.
  public func fill(_ groups: [SettingGroup], of values: inout SettingValues) throws(UsageError) {
    let known = groups.flatMap(\.settings)
    let texts = try FileSettings(file, of: known, by: \.flag, unknown: "a profile has no key").settings
    for declaration in known {
      guard let given = texts[declaration.flag], values.entries[declaration.key]?.source == .standard else { continue }
      values.insert(declaration, try declaration.value(of: given.texts, from: given.source), given.source, given.texts)
    }
  }

  /// Writes the settings of the groups as a profile.
  public static func text(of groups: [SettingGroup], in values: SettingValues) -> String {
    groups.flatMap(\.settings).compactMap { declaration in
      guard let entry = values.entries[declaration.key] else { return nil }
      let text = entry.texts.isEmpty ? declaration.defaultText : entry.texts.joined(separator: ",")
      return text.map { "\(declaration.flag) = \($0)\n" }
    }.joined()
  }
}
