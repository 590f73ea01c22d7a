import JSON

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
  public init(_ file: InputFile) throws(UsageError) {
    guard let text = String(validating: file.bytes, as: UTF8.self) else {
      throw UsageError(.unreadableFile, "\(PrintedText.echo(file.path)) is not UTF-8")
    }
    try self.init(file.path, text: text)
  }

  /// Fills the settings of the groups that have no value of their own.
  public func fill(_ groups: [SettingGroup], of values: inout SettingValues) throws(UsageError) {
    let known = groups.flatMap(\.settings)
    var texts: [String: (texts: [String], source: SettingSource)] = [:]
    for line in file.lines {
      let source = SettingSource.file(file.path, line: line.number)
      guard let declaration = known.first(where: { $0.flag == line.key }) else {
        let near = Suggestion.nearest(to: line.key, in: known.map(\.flag))
        throw UsageError(.unknownKey, "\(source): a profile has no key '\(PrintedText.echo(line.key))'" + Suggestion.question(near))
      }
      let before = texts[line.key]
      if let before, !declaration.isRepeated {
        throw UsageError(.malformedFile, "\(source): '\(line.key)' stands already in \(before.source)")
      }
      let all = (before?.texts ?? []) + [line.value]
      _ = try declaration.value(of: all, from: source)
      texts[line.key] = (all, source)
    }
    for declaration in known {
      guard let given = texts[declaration.flag], values.entries[declaration.key]?.source == .standard else { continue }
      values.fill(declaration, try declaration.value(of: given.texts, from: given.source), given.source, given.texts)
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

extension SettingValues {
  /// Replaces a default.
  fileprivate mutating func fill(_ declaration: SettingDeclaration, _ value: any Sendable, _ source: SettingSource, _ texts: [String]) {
    entries[declaration.key] = Entry(declaration: declaration, value: value, source: source, texts: texts)
  }
}
