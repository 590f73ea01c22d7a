import Glibc
import JSON

extension CommandLineProgram {
  /// The configuration file, a setting of every command.
  static let configuration = Setting(
    "config", .file, "File of settings, one 'key = value' a line. Flags and environment variables take precedence over it.")

  /// Parses a command line.
  ///
  /// - Parameters:
  ///   - arguments: the words after the program's name.
  ///   - environment: the variables; nil for those of this process. An empty one counts as missing.
  public func parse(_ arguments: [String], environment: [String: String]? = nil) throws(UsageError) -> Invocation {
    guard let first = arguments.first else { throw UsageError(.unknownCommand, "which command? 'carillon --help' lists them") }
    if first == "help", arguments.count > 1, !arguments[1].hasPrefix("-") {
      return try parse(Array(arguments.dropFirst()) + ["--help"], environment: environment)
    }
    if ["--help", "-h", "help"].contains(first) { return .print(help) }
    if first == "--help-all" { return .print(([help] + commands.map { help(of: $0, .complete) }).joined(separator: "\n")) }
    if ["--version", "version"].contains(first) { return .print("\(name) \(version)\n") }
    guard let (command, rest) = command(in: arguments) else {
      let isHelp = arguments.count == 2 && ["--help", "-h", "--help-all", "help"].contains(arguments[1])
      if isHelp, let help = help(ofAllBeginningWith: first) { return .print(help) }
      throw unknownCommand(arguments)
    }
    var line = CommandLine(command: command)
    do throws(UsageError) {
      try line.read(rest)
      if let extent = line.wantedHelp { return .print(help(of: command, extent)) }
      let variables = try EnvironmentSettings(of: self, environment)
      return .run(command, try values(of: line, variables))
    } catch {
      throw UsageError(error.code, error.description, command: command.name)
    }
  }

  /// Reads a variable of this process' environment.
  public static func processEnvironment(_ name: String) throws(UsageError) -> String? {
    guard let text = getenv(name) else { return nil }
    return try validText(text, of: name)
  }

  /// The arguments of this process, without the program's name.
  public static func processArguments() throws(UsageError) -> [String] {
    let all = UnsafeBufferPointer(start: Swift.CommandLine.unsafeArgv, count: Int(Swift.CommandLine.argc)).compactMap { $0 }
    var arguments: [String] = []
    for (place, text) in all.enumerated().dropFirst() { arguments.append(try validText(text, of: "argument \(place)")) }
    return arguments
  }

  /// Swift would repair a text that is not UTF-8, and two names would become one.
  static func validText(_ text: UnsafePointer<CChar>, of place: String) throws(UsageError) -> String {
    guard let valid = String(validatingCString: text) else {
      throw UsageError(.wrongValue, "\(place) is not UTF-8")
    }
    return valid
  }

  /// The command whose name the arguments begin with, and the rest of them.
  func command(in arguments: [String]) -> (Command, [String])? {
    // `topics create` before `topics`.
    for words in stride(from: min(2, arguments.count), through: 1, by: -1) {
      let typed = arguments.prefix(words).joined(separator: " ")
      if let command = commands.first(where: { $0.name == typed }) { return (command, Array(arguments.dropFirst(words))) }
    }
    return nil
  }

  private func unknownCommand(_ arguments: [String]) -> UsageError {
    let first = arguments[0]
    let longer = commands.map(\.name).filter { $0.hasPrefix(first + " ") }
    if !longer.isEmpty { return UsageError(.unknownCommand, "'\(first)' needs one more word: \(longer.joined(separator: ", "))") }
    if first.hasPrefix("-") { return UsageError(.unknownCommand, "the command comes first, then its flags; 'carillon --help' lists them") }
    let near = Suggestion.nearest(to: first, in: commands.map(\.name))
    return UsageError(
      .unknownCommand, "no command '\(PrintedText.echo(first))'" + Suggestion.question(near) + "; 'carillon --help' lists them")
  }

  private func values(of line: CommandLine, _ environment: EnvironmentSettings) throws(UsageError) -> SettingValues {
    var values = SettingValues()
    values.arguments = try line.boundArguments()
    let configuration = Self.configuration.declaration
    let flag = line.flags[configuration.key]?.texts.last
    let path = flag ?? environment.settings[configuration.environment]
    let place = flag != nil ? "--\(configuration.flag)" : configuration.environment
    let file = try path.map { path throws(UsageError) in
      let file = try InputFile(path: path, givenAt: place, limit: 1 << 20)
      return try FileSettings(ConfigurationFile(file, "\(place): "), of: commands.flatMap(\.settings))
    }

    for declaration in [configuration] + line.command.settings where !declaration.isPassedOn {
      let (texts, source): ([String], SettingSource)
      if let given = line.flags[declaration.key] {
        (texts, source) = (given.texts, .flag("--" + given.written))
      } else if let text = environment.settings[declaration.environment] {
        (texts, source) = ([text], .environment(declaration.environment))
      } else if let given = file?.settings[declaration.key] {
        (texts, source) = (given.texts, given.source)
      } else {
        guard case .value(let value) = declaration.absent else { throw Self.missing(declaration) }
        values.insert(declaration, value, .standard, [])
        continue
      }
      values.insert(declaration, try declaration.value(of: texts, from: source), source, texts)
    }
    for declaration in line.command.settings where declaration.isPassedOn {
      let sources = [file?.passedOn, environment.passedOn, line.passedOn]
      values.passedOn[declaration.library] = sources.reduce(into: [:]) { $0.merge($1?[declaration.library] ?? [:]) { $1 } }
    }
    return values
  }

  private static func missing(_ declaration: SettingDeclaration) -> UsageError {
    UsageError(
      .missing,
      "--\(declaration.flag) \(declaration.placeholder ?? "") is missing (or \(declaration.environment), or '\(declaration.key)' in the "
        + "configuration file): \(declaration.text)")
  }
}

extension SettingValues {
  mutating func insert(_ declaration: SettingDeclaration, _ value: any Sendable, _ source: SettingSource, _ texts: [String]) {
    let former = entries.updateValue(Entry(declaration: declaration, value: value, source: source, texts: texts), forKey: declaration.key)
    if former == nil { order.append(declaration.key) }
  }
}

/// The flags and arguments of one command, as they were typed.
struct CommandLine {
  let command: Command
  private(set) var flags: [String: (texts: [String], written: String)] = [:]
  private(set) var passedOn: [String: [String: String]] = [:]
  private(set) var arguments: [String] = []
  private(set) var wantedHelp: HelpExtent?

  init(command: Command) { self.command = command }

  private var declarations: [SettingDeclaration] { [CommandLineProgram.configuration.declaration] + command.settings }

  mutating func read(_ typed: [String]) throws(UsageError) {
    var rest = typed[...]
    while let word = rest.popFirst() {
      if word == "--" {
        arguments += rest
        return
      }
      if word == "--help" || word == "-h" {
        wantedHelp = wantedHelp ?? .short
      } else if word == "--help-all" {
        wantedHelp = .complete
      } else if word.hasPrefix("--") {
        try readFlag(String(word.dropFirst(2)), &rest)
      } else if word.hasPrefix("-"), word != "-", !word.dropFirst().allSatisfy({ $0.isNumber || $0 == "." }) {
        throw UsageError(
          .unknownFlag, "no flag '\(PrintedText.echo(word))': flags begin with two dashes" + Suggestion.question(nearestFlag(word)))
      } else {
        arguments.append(word)
      }
    }
  }

  private mutating func readFlag(_ word: String, _ rest: inout ArraySlice<String>) throws(UsageError) {
    let equals = word.firstIndex(of: "=")
    let name = equals.map { String(word[..<$0]) } ?? word
    let attached = equals.map { String(word[word.index(after: $0)...]) }

    if let declaration = declarations.first(where: { $0.flag == name && !$0.isPassedOn }) {
      if declaration.isSwitch { return add(declaration, attached ?? "true", name) }
      return add(declaration, try value(attached, &rest, of: name, declaration), name)
    }
    if name.hasPrefix("no-"), let declaration = declarations.first(where: { $0.isSwitch && $0.flag == name.dropFirst(3) }) {
      guard attached == nil else { throw UsageError(.missingValue, "--\(name) takes no value") }
      return add(declaration, "false", name)
    }
    if let declaration = declarations.first(where: { $0.isPassedOn && name.hasPrefix($0.key.dropLast()) }) {
      let text = try value(attached, &rest, of: name, declaration)
      passedOn[declaration.library, default: [:]][String(name.dropFirst(declaration.key.count - 1))] = text
      return
    }
    throw UsageError(.unknownFlag, "'\(command.name)' has no flag '--\(PrintedText.echo(name))'" + Suggestion.question(nearestFlag(name)))
  }

  private func nearestFlag(_ name: String) -> String? {
    Suggestion.nearest(to: String(name.drop { $0 == "-" }), in: declarations.map(\.flag) + ["help", "help-all"]).map { "--" + $0 }
  }

  /// The text after the flag's equals sign, else the next word.
  private func value(
    _ attached: String?, _ rest: inout ArraySlice<String>, of name: String, _ declaration: SettingDeclaration
  ) throws(UsageError) -> String {
    if let attached { return attached }
    guard let text = rest.first, !text.hasPrefix("--") else {
      throw UsageError(
        .missingValue,
        "--\(PrintedText.echo(name)) needs a value: \(declaration.allowed)"
          + (rest.isEmpty ? "" : " (one that begins with -- is written --\(PrintedText.echo(name))=VALUE)"))
    }
    rest.removeFirst()
    return text
  }

  private mutating func add(_ declaration: SettingDeclaration, _ text: String, _ written: String) {
    flags[declaration.key] = ((flags[declaration.key]?.texts ?? []) + [text], written)
  }

  /// The arguments by their names.
  func boundArguments() throws(UsageError) -> [String: [String]] {
    var rest = arguments[...]
    var bound: [String: [String]] = [:]
    for argument in command.arguments {
      if rest.isEmpty {
        if argument.count.isOptional { continue }
        throw UsageError(.missing, "'\(command.name)' needs \(argument.name): \(argument.text)")
      }
      bound[argument.name] = argument.count.isRepeated ? Array(rest) : [rest[rest.startIndex]]
      rest = argument.count.isRepeated ? [] : rest.dropFirst()
    }
    if let extra = rest.first {
      throw UsageError(.unexpectedArgument, "'\(command.name)' does not know what to do with '\(PrintedText.echo(extra))'")
    }
    return bound
  }
}

/// The lines of the configuration file by setting. Each is checked, whichever command uses it.
struct FileSettings {
  private(set) var settings: [String: (texts: [String], source: SettingSource)] = [:]
  private(set) var passedOn: [String: [String: String]] = [:]

  /// - Parameters:
  ///   - known: the settings that the file may have.
  ///   - name: what names a setting in the file.
  ///   - unknown: the beginning of the error about another name.
  init(
    _ file: ConfigurationFile, of known: [SettingDeclaration], by name: KeyPath<SettingDeclaration, String> = \.key,
    unknown: String = "no setting has the key"
  ) throws(UsageError) {
    for line in file.lines {
      let source = SettingSource.file(file.path, line: line.number)
      if let declaration = known.first(where: { $0[keyPath: name] == line.key && !$0.isPassedOn }) {
        let before = settings[line.key]
        if let before, !declaration.isRepeated {
          throw UsageError(.malformedFile, "\(source): '\(line.key)' stands already in \(before.source)")
        }
        let texts = (before?.texts ?? []) + [line.value]
        _ = try declaration.value(of: texts, from: source)
        settings[line.key] = (texts, source)
      } else if let declaration = known.first(where: { $0.isPassedOn && line.key.hasPrefix($0.key.dropLast()) }) {
        passedOn[declaration.library, default: [:]][String(line.key.dropFirst(declaration.key.count - 1))] = line.value
      } else {
        let near = Suggestion.nearest(to: line.key, in: known.filter { !$0.isPassedOn }.map { $0[keyPath: name] })
        throw UsageError(.unknownKey, "\(source): \(unknown) '\(PrintedText.echo(line.key))'" + Suggestion.question(near))
      }
    }
  }
}
