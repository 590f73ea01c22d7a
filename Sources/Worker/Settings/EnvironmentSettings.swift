import Glibc
import JSON

/// The variables of a process that begin with `CARILLON_`. Each is checked, whichever command uses it.
struct EnvironmentSettings {
  private static let prefix = "CARILLON_"

  /// The values of settings, by their variables. An empty value counts as missing.
  private(set) var settings: [String: String] = [:]
  /// The values for libraries, by their prefixes and names: `CARILLON_KAFKA_SASL_PASSWORD` is the property `sasl.password`.
  private(set) var passedOn: [String: [String: String]] = [:]

  /// The variables of this process.
  private static func ofProcess() throws(UsageError) -> [String: String] {
    var variables: [String: String] = [:]
    var place = environ
    while let entry = place.pointee {
      place += 1
      guard strncmp(entry, prefix, prefix.utf8.count) == 0, let equals = strchr(entry, 0x3D) else { continue }
      let name = String(decoding: UnsafeRawBufferPointer(start: entry, count: equals - entry), as: UTF8.self)
      variables[name] = try CommandLineProgram.validText(equals + 1, of: name)
    }
    return variables
  }

  /// Reads these variables, or those of the process.
  ///
  /// - Throws: a variable that no command of the program has.
  init(of program: CommandLineProgram, _ given: [String: String]?) throws(UsageError) {
    let variables: [String: String]
    if let given { variables = given } else { variables = try Self.ofProcess() }
    let declarations = [CommandLineProgram.configuration.declaration] + program.commands.flatMap(\.settings)
    let known = Set(declarations.filter { !$0.isPassedOn }.map(\.environment))
    let libraries = declarations.filter(\.isPassedOn)
    for (name, value) in variables.sorted(by: { $0.key < $1.key }) where name.hasPrefix(Self.prefix) {
      if known.contains(name) {
        if !value.isEmpty { settings[name] = value }
      } else if Self.isServiceLink(name, variables) {
        continue
      } else if let library = libraries.first(where: { name.hasPrefix($0.environment.dropLast()) }) {
        let property = name.dropFirst(library.environment.count - 1).lowercased().replacing("_", with: ".")
        guard library.isKnown(property) else {
          throw Self.mistake(name, ", and there is no property '\(PrintedText.echo(property))'", known)
        }
        if !value.isEmpty { passedOn[library.library, default: [:]][property] = value }
      } else {
        throw Self.mistake(name, " of any command", known)
      }
    }
  }

  private static func mistake(_ name: String, _ more: String, _ known: Set<String>) -> UsageError {
    let near = Suggestion.nearest(to: name, in: known.sorted())
    return UsageError(.unknownKey, "\(PrintedText.echo(name)) is no setting\(more)" + Suggestion.question(near))
  }

  /// Whether Kubernetes has set the variable, for a Service whose name begins with `carillon-`.
  ///
  /// A Service gives `…_SERVICE_HOST`, `…_SERVICE_PORT` and `…_PORT`, and more that begin with these. Some have a URL as their value.
  private static func isServiceLink(_ name: String, _ variables: [String: String]) -> Bool {
    let services = variables.keys.filter { $0.hasSuffix("_SERVICE_HOST") }.map { $0.dropLast("_SERVICE_HOST".count) }
    return ["tcp://", "udp://", "sctp://"].contains { variables[name]?.hasPrefix($0) == true }
      || services.contains { name.hasPrefix($0 + "_SERVICE_") || name == $0 + "_PORT" || name.hasPrefix($0 + "_PORT_") }
  }
}
